import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const EXAMPLES = join(import.meta.dirname, '../../examples')

/** The sources of the examples that have packages of their own: what test/ecosystem/ installs, compiles and runs. */
export async function sourcesOfProjects (): Promise<string[]> {
  const paths = ['nestjs/src', 'autoload', 'zod', 'kysely'].flatMap(folder => {
    return globSync(`${folder}/**/*.ts`, { cwd: EXAMPLES, exclude: ['**/node_modules'] })
  })
  return Promise.all(paths.map(path => readFile(join(EXAMPLES, path), 'utf8')))
}
