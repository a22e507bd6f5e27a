/**
 * Explains why a version of better-sqlite3 must not be used on a version of Node.js. Both pairs
 * crash the process: versions before 13 abort at a garbage collection on Node.js 24.19 and later,
 * and 13 has a segmentation fault at the first query on Node.js before 22.
 *
 * @param database a connection, or the prototype of the class
 * @returns a sentence that says which version to install; null when the two work together
 */
export function incompatibility (database: object, node: string = process.versions.node): string | null {
  const [major = 0, minor = 0] = node.split('.').map(Number)
  // The method was added in version 13. A bundle holds no version number to read.
  const is13 = 'explain' in database
  if (is13 && major < 22) {
    return `better-sqlite3 13 and later crash on Node.js ${node}; run Node.js 22 or later`
  }
  if (!is13 && (major > 24 || (major === 24 && minor >= 19))) {
    return `better-sqlite3 before 13 crashes on Node.js ${node}; install it anew: npm install better-sqlite3@13`
  }
  return null
}
