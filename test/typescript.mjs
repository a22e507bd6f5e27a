// Lets Node.js run the sources as they are: `node --import ./test/typescript.mjs test/claims.test.ts`. Node strips the types itself;
// what is left to say is that './claims.js' outside node_modules is './claims.ts', and that the name of this package is `lib/`.
import { readdirSync, statSync } from 'node:fs'
import { enableCompileCache, registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

const PACKAGE = /^fastify-svc-auth(?:\/(?<path>schema\/.+|pages|passwords|second-factor|passkeys|testing|oauth-server|api-keys|connections|mails))?$/

// The store loads Drizzle as it does in the package: bundled, with the tables.
const DRIZZLE = /\/lib\/drizzle\/(?<name>\w+)\.js$/
const BUNDLE = '../node_modules/.cache/drizzle'
if (!isBundled()) await import('../drizzle/bundle.mjs').then(({ bundleDrizzle }) => { bundleDrizzle('node_modules/.cache/drizzle') })

// Whatever a test is about, no audit event may hold a secret.
await import('./audited-secrets.mjs').then(({ watchEvents }) => { watchEvents() })

const isEveryday = process.env.NODE_V8_COVERAGE === undefined && process.env.TEST_ALL === undefined

// tap follows each promise by `async_hooks`, a sixth of the time of the tests, to name the test in which
// an error was thrown that nothing awaits. Without that, the error ends the file, which fails as well.
const UNWATCHED = 'data:text/javascript,export class Domain { destroy () {} }'

registerHooks({
  resolve (specifier, context, nextResolve) {
    if (isEveryday && specifier === 'async-hook-domain') return { url: UNWATCHED, format: 'module', shortCircuit: true }
    const named = PACKAGE.exec(specifier)
    if (named !== null) return nextResolve(new URL(`../lib/${named.groups.path ?? 'index'}.ts`, import.meta.url).href, context)
    const isFile = /^(?:\.|\/|file:)/.test(specifier)
    const bundled = isFile ? DRIZZLE.exec(new URL(specifier, context.parentURL).pathname) : null
    if (bundled !== null) return nextResolve(new URL(`${BUNDLE}/${bundled.groups.name}.js`, import.meta.url).href, context)
    const isSource = isFile && !new URL(specifier, context.parentURL).pathname.includes('/node_modules/')
    return nextResolve(isSource ? specifier.replace(/\.js$/, '.ts') : specifier, context)
  }
})

// Coverage takes source maps, and misses functions that come from a cache. Without coverage, what was
// compiled is kept for the next process, and the source maps of packages, which tap switches on, are
// not read; types that are stripped leave each line where it was.
if (isEveryday) {
  enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)))
  process.setSourceMapsEnabled(false)
}

/** Whether the bundle is there, and is newer than what it is made of. */
function isBundled () {
  const inFolder = folder => readdirSync(new URL(folder, import.meta.url)).map(name => `${folder}/${name}`)
  const parts = [...inFolder('../lib/drizzle'), ...inFolder('../lib/schema'), '../drizzle/bundle.mjs', '../node_modules/.package-lock.json']
  const timeOf = file => statSync(new URL(file, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return timeOf(`${BUNDLE}/sql.js`) > Math.max(...parts.map(timeOf))
}
