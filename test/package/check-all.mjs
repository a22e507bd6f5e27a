/**
 * What a user gets, wherever they install it: the tarball in an empty project, with and without each optional peer, compiled by each supported
 * TypeScript, and run as ES module, as CommonJS and bundled, on each supported Node.js. It takes minutes: each night, and before a release.
 */
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ofSchemas, writeExports } from './declarations.mjs'
import { OTHER_VERSIONS, installNode } from '../node-versions.mjs'
import { ROOT, run, withProject } from './project.mjs'

const TYPESCRIPTS = ['5.9', '6', '7']
const OPTIONAL_PEERS = ['uqr', '@simplewebauthn/server', 'better-sqlite3', 'postgres', 'drizzle-orm']

/** The applications to bundle, the ending of the bundle, and the options that docs/deployment.md has for it. */
const BUNDLES = [
  ['app.js', 'mjs', ['--format=esm', '--splitting', '--out-extension:.js=.mjs',
    "--banner:js=import { createRequire as cr } from 'node:module'; const require = cr(import.meta.url);"]],
  ['app.cjs', 'cjs', ['--format=cjs', '--out-extension:.js=.cjs']]
]

const nodes = [dirname(process.execPath), ...OTHER_VERSIONS.map(installNode)].map(folder => join(folder, 'node'))

await withProject(async project => {
  await project.install('fastify-svc-auth', 'fastify')
  for (const count of [...OPTIONAL_PEERS.keys(), OPTIONAL_PEERS.length]) {
    const peers = OPTIONAL_PEERS.slice(0, count)
    if (count > 0) await project.install(...peers.slice(-1))
    await runEverywhere(['peers.mjs', ...peers], project.path('.'))
  }

  await project.install('@types/node', '@types/better-sqlite3')
  await writeExports(project, 'members', name => !ofSchemas(name))
  await writeExports(project, 'schemas', ofSchemas)
  for (const version of TYPESCRIPTS) {
    await project.run('npm', ['install', '--no-audit', '--no-fund', '--no-save', `typescript@${version}`])
    await project.compile('.')
    for (const folder of ['schemas', 'isolated']) await project.compile(folder, { passOver: ['node_modules/drizzle-orm/'] })
    console.log(`compiled by TypeScript ${(await project.run('tsc', ['--version'])).trim()}`)
  }
  for (const app of ['app.js', 'app.cjs', 'typed.cjs', 'notes.test.js']) await runEverywhere([app], project.path('.'))

  for (const [app, ending, options] of BUNDLES) {
    const external = ['@node-rs/argon2', 'better-sqlite3', 'postgres'].map(name => `--external:${name}`)
    const args = [app, '--bundle', '--platform=node', '--outdir=bundle', '--log-level=warning', ...external, ...options]
    await run(join(ROOT, 'node_modules/.bin/esbuild'), args, { cwd: project.path('.') })
    await withDeployed(project, async folder => runEverywhere([`app.${ending}`], folder))
  }
})

// Here, because the release gets it once the package is published.
await run('node', ['test/package/sbom.mjs'], { cwd: ROOT })
console.log('the bill of materials is complete')

/** Runs a file on each Node.js. */
async function runEverywhere (args, cwd) {
  for (const node of nodes) console.log((await run(node, args, { cwd })).trim())
}

/** Copies a bundle to a folder where only the native modules are installed. */
async function withDeployed (project, work) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-bundle-'))
  try {
    await cp(project.path('bundle'), folder, { recursive: true })
    await mkdir(join(folder, 'node_modules/@node-rs'), { recursive: true })
    for (const name of ['@node-rs/argon2', 'better-sqlite3']) await symlink(project.path('node_modules', name), join(folder, 'node_modules', name))
    await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
