import type { Defined } from './base/values.js'
import { isPlainObject, isText } from './claims.js'
import { OptionsError } from './errors.js'

/**
 * Checks the value of an option and returns it, or its default where it is undefined. Throws an
 * OptionsError that names the option, such as `session.cookie.maxAge`, and never shows the value.
 */
export type Check<Value> = (value: unknown, option: string) => Value

export type Checks = Readonly<Record<string, Check<unknown>>>

/** A check for each option of an interface. */
export type ChecksOf<Options> = { readonly [Name in keyof Options]-?: Check<unknown> }

/** The options as their checks return them; without those that are undefined. */
export type Checked<Table extends Checks> = Readonly<Defined<{ [Name in keyof Table]: ReturnType<Table[Name]> }>>

/** Checks the options of a class or function; the errors read `owner: option must be …`. */
export function checkedOptions<Table extends Checks> (
  owner: string, options: unknown, checks: Table, example: string
): Checked<Table> {
  if (!isPlainObject(options)) throw new OptionsError(`${owner} takes an object of options, such as ${example}`)
  assertKnownOptions(owner, options, Object.keys(checks))
  return checkedMembers(options, checks, `${owner}: `)
}

/** Checks the members of an object by a table, and ignores others. */
export function checkedMembers<Table extends Checks> (options: object, checks: Table, prefix = ''): Checked<Table> {
  const members: Array<readonly unknown[]> = Object.entries(checks)
    .map(([name, check]) => [name, check(Reflect.get(options, name), `${prefix}${name}`)])
    .filter(([, value]) => value !== undefined)
  return Object.freeze(Object.fromEntries(members))
}

/** Options in an object of their own; without it each of them has its default. */
export function table<Table extends Checks> (checks: Table, expected = listed(checks)): Check<Checked<Table>> {
  return (value, option) => {
    const options = value === undefined ? {} : value
    if (!isPlainObject(options)) throw new OptionsError(`${option} must be ${expected}`)
    assertKnownOptions(option, options, Object.keys(checks))
    return checkedMembers(options, checks, `${option}.`)
  }
}

/** Options in an object of their own, true for their defaults, or false, which becomes null. */
export function tableOrBoolean<Table extends Checks> (checks: Table): Check<Checked<Table> | null> {
  const check = table(checks, `true, false or ${listed(checks)}`)
  return orFalse((value, option) => check(value === true ? {} : value, option))
}

/** What a check accepts, or false, which becomes null. */
export function orFalse<Value> (check: Check<Value>): Check<Value | null> {
  return (value, option) => value === false ? null : check(value, option)
}

/** An option that is checked where it is used. */
export const anything: Check<unknown> = value => value

/** An option that may be undefined, and its default. */
export function optional<Value> (check: Check<Value>, byDefault: NoInfer<Value>): Check<Value>
export function optional<Value> (check: Check<Value>, byDefault: null): Check<Value | null>
export function optional<Value> (check: Check<Value>): Check<Value | undefined>
export function optional<Value> (check: Check<Value>, byDefault?: Value | null): Check<Value | null | undefined> {
  return (value, option) => value === undefined ? byDefault : check(value, option)
}

/** An option whose value passes a test. */
export function mustBe<Value> (expected: string, is: (value: unknown) => value is Value): Check<Value> {
  return (value, option) => {
    if (is(value)) return value
    throw new OptionsError(`${option} must be ${expected}`)
  }
}

export const boolean = mustBe('true or false', (value: unknown) => typeof value === 'boolean')

export const text = mustBe('a non-empty string', isText)

/** A non-empty string that a pattern matches. */
export function matching (expected: string, pattern: RegExp): Check<string> {
  return mustBe(expected, (value): value is string => isText(value) && pattern.test(value))
}

export function oneOf<const Value extends string> (...values: readonly Value[]): Check<Value> {
  const expected = values.map(value => `'${value}'`).join(', ').replace(/, (?=[^,]*$)/, ' or ')
  return mustBe(expected, (value): value is Value => values.some(other => other === value))
}

/** A whole number in a range, of a unit such as `seconds`. */
export function wholeNumber (from: number, to = Infinity, unit?: string): Check<number> {
  const expected = `a whole number${unit === undefined ? '' : ` of ${unit}`} from ${from}`
  const isInRange = (value: unknown): value is number =>
    Number.isSafeInteger(value) && Number(value) >= from && Number(value) <= to
  return mustBe(to === Infinity ? expected : `${expected} to ${to}`, isInRange)
}

/** A function; nothing checks its parameters and its result. */
export function callable<F extends (...given: never[]) => unknown> (signature?: string): Check<F> {
  const expected = signature === undefined ? 'a function' : `a function ${signature}`
  return mustBe(expected, (value): value is F => typeof value === 'function')
}

/** A list, of which a copy is returned. */
export function listOf<Item> (expected: string, is: (item: unknown) => item is Item): Check<readonly Item[]> {
  const check = mustBe(expected, (value): value is Item[] => Array.isArray(value) && value.every(is))
  return (value, option) => [...check(value, option)]
}

/** Whether a value has each text of a model, at any depth: a caller without types forgets some. */
export function hasTextsOf (value: unknown, model: object): boolean {
  return isPlainObject(value) && Object.entries(model).every(([name, text]) =>
    typeof text === 'string' ? isText(value[name]) : hasTextsOf(value[name], text))
}

/** Makes the test of whether a value has all of these methods. */
export function hasMethods<T> (...names: ReadonlyArray<keyof T>): (value: unknown) => value is T {
  return (value): value is T => names.every(name => typeof Object(value)[name] === 'function')
}

/** Refuses unknown options; `hintFor` says what to write instead, by default a known name. */
export function assertKnownOptions (
  owner: string, options: object, known: readonly string[], hintFor?: (name: string) => string | undefined
): void {
  const unknown = Object.keys(options).find(name => !known.includes(name))
  if (unknown === undefined) return
  const meant = known.find(name => spelling(name) === spelling(unknown))
  const hint = meant === undefined ? hintFor?.(unknown) : `it is called ${meant}`
  throw unknownOption(owner, unknown, hint ?? `expected one of ${known.join(', ')}`)
}

/** The error for an option that does not exist, with a hint at what to write instead. */
export function unknownOption (owner: string, name: string, hint: string): OptionsError {
  return new OptionsError(`${owner} has no option "${name}"; ${hint}`)
}

/** The same for baseUrl, baseURL and base_url, and for providers and provider. */
function spelling (name: string): string {
  return name.toLowerCase().replaceAll('_', '').replace(/s$/, '')
}

function listed (checks: Checks): string {
  return `an object { ${Object.keys(checks).join(', ')} }`
}
