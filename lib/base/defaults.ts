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
