import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import { compilerOptions } from './helpers/compiler-options.js'
import { sourcesOfProjects } from './helpers/example-sources.js'
import { Documentation, Markdown } from './helpers/markdown.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DOCS = await Documentation.read()

const SOURCES = await sourcesOfProjects()

/** Whether a block is part of an example with packages of its own, with which the test of that example compiles it. */
function isOfProject (code: string): boolean {
  return SOURCES.some(source => source.includes(code))
}

/** What the code of the documentation takes as given. */
const GIVEN = `
import type { FastifyInstance, FastifyRequest } from 'fastify'
import 'fastify-svc-auth'

declare global {
  const app: FastifyInstance
  const request: FastifyRequest
  const userId: string
  const clientId: string
  const clientSecret: string
}
`

interface Block {
  name: string
  code: string
}

/** The TypeScript blocks of a page; a first line such as `// schema.ts` names the file. */
function blocksOf (markdown: Markdown, page = 'block'): Block[] {
  return markdown.blocks('ts').filter(code => !isOfProject(code)).map((code, index) => {
    const [, name = `${page}-${index + 1}.ts`] = /^\/\/ (\S+\.ts)\n/.exec(code) ?? []
    return { name, code: /^(import|export) /m.test(code) ? code : `${code}\nexport {}\n` }
  })
}

const BLOCKS = [...DOCS.pages].flatMap(([path, page]) => blocksOf(page, path.replace('/', '-').replace(/\.md$/, '')))

/** The files that the blocks import. */
const parsed = new Map<string, ts.SourceFile | undefined>()

/**
 * Compiles blocks as those of one application in this folder, with the settings of this repository.
 *
 * @returns the mistakes, by block
 */
function mistakesIn (blocks: Block[]): string[] {
  const options = compilerOptions()
  const folder = join(ROOT, 'documented')
  const files = new Map(blocks.map(({ name, code }) => [join(folder, name), code]))

  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, directoryExists, getSourceFile } = host
  host.fileExists = path => files.has(path) || fileExists(path)
  host.readFile = path => files.get(path) ?? readFile(path)
  host.getSourceFile = (path, ...others) => {
    if (files.has(path)) return getSourceFile(path, ...others)
    if (!parsed.has(path)) parsed.set(path, getSourceFile(path, ...others))
    return parsed.get(path)
  }
  host.directoryExists = path => path === folder || (directoryExists?.(path) ?? true)

  // Examples name what they get, for the reader.
  const program = ts.createProgram([...files.keys()], { ...options, noUnusedLocals: false, noUnusedParameters: false }, host)
  const mistakes = [...files.keys()].flatMap(path => ts.getPreEmitDiagnostics(program, program.getSourceFile(path)))
  return mistakes.map(({ file, start = 0, messageText }) => {
    const place = file === undefined ? '' : `${file.fileName.replace(`${dirname(folder)}/`, '')}:${file.getLineAndCharacterOfPosition(start).line + 1} `
    return place + ts.flattenDiagnosticMessageText(messageText, '\n')
  })
}

t.test('the code of the documentation compiles', async t => {
  const names = BLOCKS.map(({ name }) => name)
  const others = DOCS.texts.flatMap(page => page.blocks('ts')).filter(isOfProject)
  const fences = DOCS.texts.flatMap(({ text }) => text.match(/^ *```(ts|js|typescript|javascript)\b/gm) ?? [])
  t.equal(BLOCKS.length + others.length, fences.length, 'no block is passed over')
  t.equal(new Set(names).size, names.length, 'no two files have one name')
  t.strictSame(mistakesIn([{ name: 'given.ts', code: GIVEN }, ...BLOCKS]), [])
})

t.test('code that does not compile is found', async t => {
  const wrong = blocksOf(new Markdown([
    '```ts', "await app.auth.grant(userId, 'admin')", '```', '   ```ts', '   // named.ts',
    '   const claims: string = app.authProviders', '   ```', ''
  ].join('\n')))

  t.match(
    mistakesIn([{ name: 'given.ts', code: GIVEN }, ...wrong]),
    [/^documented\/block-1\.ts:1 .*not assignable/, /^documented\/named\.ts:2 .*not assignable/]
  )
})
