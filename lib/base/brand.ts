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
      return isInstance || (this === branded && brandOf(value)?.name === name)
    }
  })
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
