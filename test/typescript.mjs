// Lets Node.js run the sources as they are: `node --import ./test/typescript.mjs test/claims.test.ts`. Node strips the types itself;
// what is left to say is that './claims.js' outside node_modules is './claims.ts', and that the name of this package is `lib/`.
import { enableCompileCache, registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

const PACKAGE = /^fastify-svc-auth(?:\/(?<path>schema\/.+|passwords|testing))?$/

// Node parses the package.json of a package for each of its modules: 180 KB for each of hundreds in
// Drizzle, which takes longer than all else that a process of the tests loads. They are ES modules,
// and name each other by path.
const DRIZZLE = /\/node_modules\/drizzle-orm\/.+\.js$/

const isEveryday = process.env.NODE_V8_COVERAGE === undefined && process.env.TEST_ALL === undefined

// tap follows each promise by `async_hooks`, a sixth of the time of the tests, to name the test in which
// an error was thrown that nothing awaits. Without that, the error ends the file, which fails as well.
const UNWATCHED = 'data:text/javascript,export class Domain { destroy () {} }'

registerHooks({
  resolve (specifier, context, nextResolve) {
    if (isEveryday && specifier === 'async-hook-domain') return { url: UNWATCHED, format: 'module', shortCircuit: true }
    const named = PACKAGE.exec(specifier)
    if (named !== null) return nextResolve(new URL(`../lib/${named.groups.path ?? 'index'}.ts`, import.meta.url).href, context)
    if (/^\.\.?\/.+\.js$/.test(specifier) && DRIZZLE.test(context.parentURL)) {
      return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true }
    }
    const isFile = /^(?:\.|\/|file:)/.test(specifier)
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
