import { hash } from 'node:crypto'

export const DAY_MS = 24 * 60 * 60 * 1000

/** The version of this package. */
export const VERSION = '0.2.0'

/** An application may load several copies of the package, as a workspace installs them. */
const BRAND = Symbol.for('fastify-svc-auth')

/** What `instanceof` asks of a class without a rule of its own. */
const isInstanceOf = Function.prototype[Symbol.hasInstance]

type Class = abstract new (...args: never[]) => object

interface Branded {
  readonly [BRAND]?: { readonly name: string, readonly version: string }
}

/**
 * Lets `instanceof` recognise an instance of a class that another copy of the package has made. A
 * subclass recognises its own instances alone.
 */
export function brand (branded: Class, name: string): void {
  Object.defineProperty(branded.prototype, BRAND, { value: { name, version: VERSION } })
  Object.defineProperty(branded, Symbol.hasInstance, {
    value (this: Class, value: unknown): boolean {
      const isInstance = isInstanceOf.call(this, value)
      return isInstance || (this === branded && isBranded(value, name))
    }
  })
}

/** Whether a class of this name has made a value, in any copy of the package: it is not loaded. */
export function isBranded (value: unknown, name: string): boolean {
  return brandOf(value)?.name === name
}

/** Returns the version of another copy that has made a value; null for any other value. */
export function otherVersion (value: unknown): string | null {
  const { version = VERSION } = brandOf(value) ?? {}
  return version === VERSION ? null : version
}

function brandOf (value: unknown): Branded[typeof BRAND] {
  const { [BRAND]: found }: Branded = Object(value)
  return found
}

/**
 * A map with a maximum number of entries. An entry above it replaces the one that was set longest
 * ago.
 */
export class BoundedMap<V> extends Map<string, V> {
  readonly #max: number

  constructor (max: number) {
    super()
    this.#max = max
  }

  override set (key: string, value: V): this {
    this.delete(key)
    super.set(key, value)
    const [oldest] = this.keys()
    if (oldest !== undefined && this.size > this.#max) this.delete(oldest)
    return this
  }
}

export type Complete<Options> = { [Name in keyof Options]-?: Exclude<Options[Name], undefined> }

/** Options of which those that may be undefined may be absent instead. */
export type Defined<Options> =
  { [Name in keyof Options as undefined extends Options[Name] ? never : Name]: Options[Name] } &
  { [Name in keyof Options as undefined extends Options[Name] ? Name : never]?: Exclude<Options[Name], undefined> }

/** Leaves out the options that are undefined: they have their defaults. */
export function withoutUndefined<Options extends object> (options: Options): Defined<Options> {
  const members: Array<readonly unknown[]> = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(members)
}

/** Returns 192 bits of a hash as 32 characters, which tell ids apart without giving them away. */
export function digestOf (text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 32)
}

/** Matches a UUID in lower case (RFC 9562 section 4); Microsoft Entra calls it a GUID. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function isUserId (value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}

export function uuidToBase64url (userId: string): string {
  return Buffer.from(userId.replaceAll('-', ''), 'hex').toString('base64url')
}

/** The user id of 16 bytes as base64url. */
export function uuidFromBase64url (id: string): string {
  return Buffer.from(id, 'base64url').toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/**
 * Explains why an optional peer dependency could not be loaded.
 *
 * @param owner what needs it, at the beginning of a sentence
 * @returns a function for the `catch` of an import, by which bundlers know that the package may be
 *   missing
 */
export function notLoaded (name: string, owner: string): (error: unknown) => never {
  return cause => {
    const said = String(cause)
    const isMissing = ['package', 'module'].some(kind => said.includes(`Cannot find ${kind} '${name}'`))
    const advice = isMissing
      ? `${owner} needs the package ${name}; install it: npm install ${name}`
      : `The package ${name} could not be loaded: ${said}; install it again, ` +
        `and leave it out of a bundle (esbuild: --external:${name})`
    throw new Error(advice, { cause })
  }
}
