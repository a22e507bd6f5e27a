import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** What the code of README takes as given. */
const GIVEN = `
import type { FastifyInstance } from 'fastify'
import 'fastify-svc-auth'

declare global {
  const app: FastifyInstance
  const userId: string
  const clientId: string
  const clientSecret: string
}
`

interface Block {
  name: string
  code: string
}

/** The TypeScript blocks of a Markdown document; a first line such as `// schema.ts` names the file. */
function blocksOf (markdown: string): Block[] {
  const fences = markdown.matchAll(/^( *)```ts\n(.*?)^\1```$/gms)
  return Array.from(fences, ([, indent = '', text = ''], index) => {
    const code = text.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    const [, name = `block-${index + 1}.ts`] = /^\/\/ (\S+\.ts)\n/.exec(code) ?? []
    return { name, code: /^(import|export) /m.test(code) ? code : `${code}\nexport {}\n` }
  })
}

/** Compiles blocks as an application of its own in this folder would be, with the settings of this repository; the mistakes, by block. */
function mistakesIn (blocks: Block[]): string[] {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  const folder = join(ROOT, 'readme')
  const files = new Map(blocks.map(({ name, code }) => [join(folder, name), code]))

  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, directoryExists } = host
  host.fileExists = path => files.has(path) || fileExists(path)
  host.readFile = path => files.get(path) ?? readFile(path)
  host.directoryExists = path => path === folder || (directoryExists?.(path) ?? true)

  // Examples name what they get, for the reader.
  const program = ts.createProgram([...files.keys()], { ...options, noUnusedLocals: false, noUnusedParameters: false }, host)
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const place = file === undefined ? '' : `${file.fileName.replace(`${dirname(folder)}/`, '')}:${file.getLineAndCharacterOfPosition(start).line + 1} `
    return place + ts.flattenDiagnosticMessageText(messageText, '\n')
  })
}

t.test('the code in README compiles', async t => {
  const markdown = await readFile(join(ROOT, 'README.md'), 'utf8')
  const blocks = blocksOf(markdown)

  for (const section of ['Protecting routes', 'Granting claims', 'Linking accounts', 'Tokens for machines']) {
    const [text = ''] = markdown.split(`\n## ${section}\n`)[1]?.split('\n## ') ?? []
    t.ok(blocksOf(text).length > 0, `${section} has code`)
  }
  t.equal(blocks.length, markdown.match(/^ *```ts$/gm)?.length, 'no block is passed over')
  t.strictSame(mistakesIn([{ name: 'given.ts', code: GIVEN }, ...blocks]), [])
})

t.test('code that does not compile is found', async t => {
  const wrong = blocksOf(['```ts', "await app.auth.grant(userId, 'admin')", '```', '   ```ts', '   // named.ts', '   const claims: string = app.authProviders', '   ```', ''].join('\n'))

  t.match(mistakesIn([{ name: 'given.ts', code: GIVEN }, ...wrong]), [/^readme\/block-1\.ts:1 .*not assignable/, /^readme\/named\.ts:2 .*not assignable/])
})
