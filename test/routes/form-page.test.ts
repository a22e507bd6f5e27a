import Fastify from 'fastify'
import t from 'tap'
import { type FormPage, sendPage } from '../../lib/routes/form-page.js'

const PAGE: FormPage = {
  title: 'Choose <a> password',
  text: ['For "ada" & \'grace\'.', 'Twice.'],
  forms: [{
    action: '/auth/local/reset-password',
    hidden: { token: 'a"b' },
    username: 'ada@example.com',
    fields: [
      { name: 'password', label: 'New password', type: 'password', autocomplete: 'new-password' },
      { name: 'name', label: 'Name', type: 'text', autocomplete: 'name', isOptional: true },
      { name: 'remember', label: 'Keep me signed in', type: 'checkbox' }
    ],
    submit: 'Set'
  }]
}

async function answerWith (page: FormPage, failure?: string) {
  const app = Fastify()
  app.get('/', async (_request, reply) => sendPage(reply, page, failure))
  return app.inject('/')
}

t.test('a page loads nothing, runs nothing, is not framed, not indexed and not kept', async t => {
  const { headers } = await answerWith(PAGE)

  t.match(headers, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; " +
      "frame-ancestors 'none'; base-uri 'none'",
    'x-robots-tag': 'noindex',
    'cache-control': 'no-store'
  })
})

t.test('texts and values on a page are escaped', async t => {
  const { body } = await answerWith(PAGE, '<script>alert(1)</script>')

  t.match(body, '<title>Choose &#60;a&#62; password</title>')
  t.match(body, '<p>For &#34;ada&#34; &#38; &#39;grace&#39;.</p>')
  t.match(body, 'value="a&#34;b"')
  t.match(body, '<p role="alert">&#60;script&#62;alert(1)&#60;/script&#62;</p>')
  t.notMatch(body, '<script')
})

t.test('a form has labels, says what browsers may fill in, and holds its token in a hidden field', async t => {
  const { body } = await answerWith(PAGE)

  t.match(body, '<html lang="en">')
  t.match(body, '<form method="post" action="/auth/local/reset-password">\n<input type="hidden" name="token" ')
  t.match(body, '<label>E-mail\n<input type="email" value="ada@example.com" autocomplete="username" readonly></label>')
  t.match(body, '<label>New password\n<input type="password" name="password" autocomplete="new-password" required></label>')
  t.match(body, '<label>Name\n<input type="text" name="name" autocomplete="name"></label>')
  t.match(body, '<label><input type="checkbox" name="remember">Keep me signed in</label>')
  t.match(body, '<button type="submit">Set</button>')
  t.notMatch(body, /<h2>|role="alert">/)
})

t.test('a page with several forms has their headings', async t => {
  const forms = ['One', 'Two'].map(heading => ({ heading, action: '/', hidden: {}, fields: [], submit: 'Send' }))

  const { body } = await answerWith({ title: 'Forms', text: [], forms })

  t.match(body, /<h2>One<\/h2>[^]*<h2>Two<\/h2>/)
  t.notMatch(body, 'username')
})
