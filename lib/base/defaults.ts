/** Options with a value for each name. */
export type Complete<Options> = { [Name in keyof Options]-?: Exclude<Options[Name], undefined> }

/** Leaves out the options that are undefined: they have their defaults. */
export function withoutUndefined<Options extends object> (options: Options): Partial<Complete<Options>> {
  const members: Array<readonly unknown[]> = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(members)
}
