/**
 * Explains why a driver could not be loaded. Drivers are optional peer dependencies.
 *
 * @param driver the name of its package
 * @returns a function for the `catch` of an import, by which bundlers know that the package may be
 *   missing
 */
export function notLoaded (driver: string): (error: unknown) => never {
  return cause => {
    const said = String(cause)
    const isMissing = ['package', 'module'].some(kind => said.includes(`Cannot find ${kind} '${driver}'`))
    const advice = isMissing
      ? `The store needs the package ${driver}; install it: npm install ${driver}`
      : `The package ${driver} could not be loaded: ${said}; install it again, ` +
        `and leave it out of a bundle (esbuild: --external:${driver})`
    throw new Error(advice, { cause })
  }
}
