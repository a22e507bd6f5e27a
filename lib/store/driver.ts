/**
 * Drivers are installed by whoever uses them.
 *
 * @throws Error saying what to install
 */
export async function installed<T> (driver: string, loading: Promise<T>): Promise<T> {
  try {
    return await loading
  } catch (error) {
    throw new Error(`The store needs the package ${driver}; install it: npm install ${driver}`, { cause: error })
  }
}
