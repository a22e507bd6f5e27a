import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from './project.mjs'

const SECRET = 'a-secret-for-the-examples-of-32-characters-or-more'

/** The names of the numbered examples, without their ending. */
async function names () {
  const files = await readdir(join(ROOT, 'examples'))
  return files.filter(file => /^\d\d-.*\.ts$/.test(file)).map(file => file.replace(/\.ts$/, ''))
}

/** Copies the numbered examples into a project, as they are. */
export async function copyExamples (project) {
  for (const name of await names()) await cp(join(ROOT, `examples/${name}.ts`), project.path('examples', `${name}.ts`))
}

/** Runs the compiled examples: each starts, with a database of Postgres for the one that needs it, and the tests pass. */
export async function runExamples (project, database) {
  const clients = ['GOOGLE', 'GITHUB', 'GITLAB'].flatMap(name => [[`${name}_CLIENT_ID`, 'id'], [`${name}_CLIENT_SECRET`, 'secret']])
  const env = { PORT: '0', SVC_SESSION_SECRET: SECRET, LOCAL_IDP_SECRET: SECRET, DATABASE_URL: database, ...Object.fromEntries(clients) }
  const place = { folder: 'examples', env }

  await project.run('drizzle-kit', ['generate', '--dialect', 'postgresql', '--schema', '05-postgres-and-migrations.ts', '--out', 'migrations'], place)
  for (const name of await names()) {
    const start = `const { app, buildApp } = await import('./${name}.js'); await (app ?? await buildApp()).close()`
    const args = name === '08-tests' ? ['--test', `${name}.js`] : ['--input-type=module', '--eval', start]
    await project.run('node', args, place)
    console.log(`examples/${name} runs`)
  }
}
