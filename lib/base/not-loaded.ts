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
