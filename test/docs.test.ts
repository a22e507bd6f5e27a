import { spawn } from 'node:child_process'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { freePort } from './helpers/loopback.js'
import { sourcesOfProjects } from './helpers/example-sources.js'
import { Documentation, Markdown } from './helpers/markdown.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DOCS = await Documentation.read()
const README = DOCS.page('README.md')

t.test('each numbered example is a block of a guide, letter for letter', async t => {
  const names = (await readdir(join(ROOT, 'examples'))).filter(name => /^\d\d-/.test(name))
  const guides = [...DOCS.pages].filter(([path]) => path.startsWith('docs/'))
  const blocks = guides.flatMap(([, page]) => page.blocks('ts'))

  t.equal(names.length, 11)
  for (const name of names) t.ok(blocks.includes(await readFile(join(ROOT, 'examples', name), 'utf8')), name)
})

t.test('the guide to server-side rendering has each file of its example, letter for letter', async t => {
  const page = DOCS.page('docs/server-side-rendering.md')
  const shown = ['server.ts', 'app/fastify.js', 'app/layout.jsx', 'app/page.jsx', 'app/account/page.jsx']

  for (const name of shown) {
    const language = name.endsWith('.ts') ? 'ts' : 'jsx'
    const code = await readFile(join(ROOT, 'examples/nextjs', name), 'utf8')
    t.match(page.text, `\`${name}\`:\n\n\`\`\`${language}\n${code}\`\`\`\n`)
  }
})

t.test('the guide to the Model Context Protocol has the server of its example, letter for letter', async t => {
  t.ok(DOCS.page('docs/mcp.md').blocks('ts').includes(await readFile(join(ROOT, 'examples/mcp/server.ts'), 'utf8')))
})

t.test('each block of the guide to frameworks is part of an example that has its own test, letter for letter', async t => {
  const sources = await sourcesOfProjects()
  for (const block of DOCS.page('docs/frameworks.md').blocks('ts')) t.ok(sources.some(source => source.includes(block)), block)
})

t.test('the first sign-in of README works, as it is written', async t => {
  const [code = ''] = README.blocks('ts')
  const [, credentials = '', register = ''] =
    /curl --cookie-jar cookies --json '(.*)' http:\/\/localhost:3000(\S+)\n/.exec(README.text) ?? []
  const [, me = ''] = /curl --cookie cookies http:\/\/localhost:3000(\S+)\n/.exec(README.text) ?? []
  const url = await start(t, code)

  const registered = await fetch(url + register, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: credentials
  })
  const [cookie = ''] = registered.headers.getSetCookie()
  const answer = await fetch(url + me, { headers: { cookie: cookie.replace(/;.*/, '') } })

  t.equal(registered.status, 201)
  t.match(await answer.json(), { provider: 'local', claims: { email: JSON.parse(credentials).email } })
})

/** Starts a program of README on a free port, with secrets and nothing else in its environment. */
async function start (t: Test, code: string): Promise<string> {
  const folder = t.testdir()
  const port = String(await freePort())
  const program = join(folder, 'app.mjs')
  await writeFile(program, code.replaceAll('3000', port))
  const secret = 'a-secret-for-the-programs-of-README'
  const typescript = new URL('typescript.mjs', import.meta.url).href
  const settings = { SVC_SESSION_SECRET: secret, LOCAL_IDP_SECRET: secret }
  // env -i, not the option env: tap adds its loaders to that.
  const child = spawn(
    'env',
    [
      '-i',
      ...Object.entries(settings).map(([name, value]) => `${name}=${value}`),
      process.execPath,
      '--import',
      typescript,
      program
    ],
    { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] }
  )
  t.teardown(() => { child.kill('SIGKILL') })
  for await (const line of createInterface(child.stdout)) {
    if (line.includes('Server listening')) return `http://localhost:${port}`
  }
  throw new Error('the program ended')
}

t.test('the settings that README names in its first commands are those that the program needs', async t => {
  const [, command = ''] = /\nexport (.*)\nnode app\.js\n/.exec(README.text) ?? []
  t.strictSame(Array.from(command.matchAll(/(\w+)=/g), ([, name]) => name), ['SVC_SESSION_SECRET', 'LOCAL_IDP_SECRET'])
})

t.test('the HTML of the documentation posts to routes that there are, with fields that they take', async t => {
  const pages = DOCS.texts.flatMap(page => page.blocks('html')).join('')
  const withoutNext = DOCS.routesWithoutNext()
  const routes = DOCS.section('Routes').table().map(([route = '', fields = '']) => {
    const isPost = route.startsWith('POST')
    const path = /`\w+ ([^`?]+)|`([^`?]+)/.exec(route)?.slice(1).find(path => path !== undefined) ?? ''
    const pages = isPost && !withoutNext.includes(path) ? ['next', 'error_next'] : []
    return { isPost, path, fields: [...new Markdown(fields).code(), ...pages] }
  })
  const routeOf = (target: string, isFormTarget = false) => routes.find(
    ({ path, isPost }) => isPost === isFormTarget && path === target.replace(/\?.*/, '').replace(/^\/auth\/(?!local\/|logout)[a-z0-9]+/, '/auth/{provider}')
  )

  const forms = Array.from(pages.matchAll(/<form method="post" action="([^"]+)">(.*?)<\/form>/gs))
  t.ok(forms.length > 0)
  for (const [, action = '', content = ''] of forms) {
    const route = routeOf(action, true)
    t.ok(route, action)
    for (const [, field = ''] of content.matchAll(/ name="([^"]+)"/g)) t.ok(route?.fields.includes(field), `${action}: ${field}`)
  }
  const links = Array.from(pages.matchAll(/<a href="([^"]+)"/g), ([, link = '']) => link)
  t.ok(links.length > 0)
  for (const link of links) t.ok(routeOf(link), link)
})

t.test('README is a door of at most 12 KB', async t => {
  t.ok(Buffer.byteLength(README.text) <= 12 * 1024)
})

t.test('the index leads to each page of docs/', async t => {
  const targets = DOCS.page('docs/README.md').targets()
  t.strictSame([...DOCS.pages.keys()].filter(path => path.startsWith('docs/') && path !== 'docs/README.md' && !targets.includes(basename(path))), [])
})
