import t from 'tap'
import type { Mail, NoticeMailKind } from '../../index.js'
import { type MailLanguage, de, en, es, fr, mailTexts } from '../../mails.js'
import { html } from '../../core/pages/elements.js'
import { ADA, registerAt, startMailApp } from '../../../test/helpers/mail-app.js'

const LANGUAGES = [en, de, es, fr]
const KINDS = Object.keys(en.kinds) as Array<Mail['kind']>
const ABOUT = { requestId: 'req-1', ip: '127.0.0.1', userAgent: null, language: null }
const URL_OF_LINK = 'https://app.example/auth/local/reset-password?token=a.b&c=<d>'

/** A mail of a kind, with all that it may have. */
function mailOf (kind: Mail['kind'], more: { language?: string, name?: string, userAgent?: string } = {}): Mail {
  const { name = null, ...about } = more
  const shared = { to: ADA.email, userId: 'u', name, about: { ...ABOUT, ...about }, accountUrl: null }
  const url = { url: URL_OF_LINK, token: 'a.b' }
  switch (kind) {
    case 'register': case 'verify-email': return { ...shared, ...url, kind, code: null, expiresIn: 86_400 }
    case 'reset-password': case 'change-email': return { ...shared, ...url, kind, code: null, expiresIn: 1800 }
    case 'sign-in': return { ...shared, ...url, kind, code: '123456', expiresIn: 600 }
    case 'enrolment': return { ...shared, kind, url: null, token: null, code: '123456', expiresIn: 600 }
    case 'domain-lapsed': return { ...shared, kind, domain: 'acme.example', url: null, token: null, code: null, expiresIn: null }
    default: return noticeOf(kind, shared)
  }
}

function noticeOf (kind: NoticeMailKind, shared: Pick<Mail, 'to' | 'userId' | 'name' | 'about'>): Mail {
  const accountUrl = kind === 'exists' || kind === 'unknown-address' ? null : 'https://app.example/auth/pages/account'
  return { ...shared, kind, url: null, token: null, code: null, expiresIn: null, accountUrl }
}

const textOf = mailTexts({ name: 'Shop' })

for (const texts of LANGUAGES) {
  const { language } = texts
  t.test(`each mail in ${language} has a subject of its own, its link, code and time, in text and in HTML`, async t => {
    for (const kind of KINDS) {
      const mail = mailOf(kind, { language })
      const { subject, text, html: document } = textOf(mail)
      t.equal(subject, `${texts.kinds[kind].subject} - Shop`, kind)
      const said = [texts.kinds[kind].text.replace('{domain}', 'acme.example'), mail.url, mail.code, mail.accountUrl].flatMap(part => part ?? [])
      for (const part of said) {
        t.ok(text.split('\n').includes(part), `${kind}: ${part}`)
        t.ok(document.replaceAll(/<[^>]*>/g, '').includes(html`${part}`.source), `${kind}: ${part} in HTML`)
      }
      t.notMatch(`${text}${document}`, /[{}]/, `${kind}: all names in braces are replaced`)
      t.notMatch(subject, /\d{6}/, 'no code in the subject')
      t.equal(text.includes(texts.lasts.split('{')[0] ?? ''), mail.expiresIn !== null, kind)
      t.ok(document.length < 30_000)
    }
    const subjects = KINDS.map(kind => texts.kinds[kind].subject)
    t.equal(new Set(subjects.filter((_, index) => KINDS[index] !== 'email-disputed')).size, subjects.length - 1)
  })

  t.test(`the texts in ${language} say all that English says, with the names that are replaced`, async t => {
    const flat = ({ kinds, ...others }: MailLanguage): Record<string, string> =>
      Object.assign({}, others, ...Object.entries(kinds).map(([kind, { subject, text }]) =>
        ({ [`${kind} subject`]: subject, [`${kind} text`]: text })))
    const english = flat(en)
    const names = (text = ''): string[] => (text.match(/\{\w+\}/g) ?? []).sort()
    for (const [path, text] of Object.entries(flat(texts))) {
      t.strictSame(names(text), names(english[path]), path)
      t.equal(text, text.trim(), path)
      if (texts !== en && path !== 'direction') t.not(text, english[path], path)
      if (path.endsWith(' text')) t.match(text, /^\p{Lu}.*\.$/u, path)
      if (path.endsWith(' subject')) t.match(text, /^\p{Lu}.*[^.]$/u, path)
    }
    t.strictSame(Object.keys(flat(texts)).sort(), Object.keys(english).sort())
  })
}

t.test('the language is that of the request, else the first one', async t => {
  const subjectIn = (languages: MailLanguage[] | undefined, language?: string): string =>
    mailTexts({ name: 'Shop', languages })(mailOf('exists', language === undefined ? {} : { language })).subject
  const subjectOf = ({ kinds }: MailLanguage): string => `${kinds.exists.subject} - Shop`

  t.equal(subjectIn(undefined), subjectOf(en))
  t.equal(subjectIn(undefined, 'de-AT, fr;q=0.5'), subjectOf(de))
  t.equal(subjectIn([fr, es], 'de'), subjectOf(fr))
  t.equal(subjectIn([fr, es], 'ja, es;q=0.1'), subjectOf(es))
  t.equal(subjectIn([fr, es], '\u0000 ,;q=x'), subjectOf(fr))
  t.match(mailTexts({ name: 'Shop' })(mailOf('exists', { language: 'de-AT' })).html, /<html lang="de-AT" dir="ltr">/)
})

t.test('attack 210: what strangers and users chose is escaped, and begins neither a line nor a header', async t => {
  const app = mailTexts({ name: 'Ben & <b>Jerry</b>', languages: [{ ...en, direction: 'rtl' }] })
  const userAgent = '<img src=x> https://evil.example Firefox/1 Windows NT'
  const { subject, text, html: document } = app(mailOf('new-browser', { name: '<script>alert(1)</script>', userAgent }))

  t.equal(subject, 'A sign-in from a new browser - Ben & <b>Jerry</b>')
  t.notMatch(document, /<script|<img|<b>|evil/)
  t.notMatch(text, /evil|img/)
  t.match(text, 'Browser: Firefox · Windows\n')
  t.match(document, /<html lang="en" dir="rtl">/)
  t.match(document, '<bdi translate="no">&#60;script&#62;')
  t.match(app(mailOf('reset-password')).html, `<a href="${html`${URL_OF_LINK}`.source}">`)
})

t.test('HTML has no picture, script, style sheet or colour, so that dark modes have it as they like', async t => {
  for (const kind of KINDS) {
    const { html: document } = textOf(mailOf(kind))
    t.notMatch(document, /<(?:img|script|style|link|table|form)\b|color:|background|src=|url\(/, kind)
    t.match(document, '<meta name="color-scheme" content="light dark">', kind)
  }
})

t.test('a new browser is named with the time in UTC, or as unknown', async t => {
  t.match(textOf(mailOf('new-browser', { language: 'en-GB' })).text,
    /\nBrowser: unknown\n\nTime: \d+ \w+ 20\d\d at \d\d:\d\d \(UTC\)\n\nYour account:\n\nhttps:/)
  t.notMatch(textOf(mailOf('key-created')).text, /Browser:|Time:/)
})

t.test('a user is greeted by name only where the mail has one, and a sign-in mail may have no code', async t => {
  t.match(textOf(mailOf('password-changed', { name: 'Ada' })).text, /^Hello Ada,\n/)
  t.match(textOf(mailOf('password-changed')).text, /^Hello,\n/)
  const { text } = textOf({ ...mailOf('sign-in'), code: null } as Mail)
  t.match(text, URL_OF_LINK)
  t.notMatch(text, /123456/)
})

t.test('wrong options are refused with a sentence, and a list that is changed afterwards changes nothing', async t => {
  const without = { ...en, kinds: { ...en.kinds, exists: { subject: 'no text' } } }
  const mistakes: Array<[object, RegExp]> = [
    [{}, /^mailTexts: name must be the name of the application/],
    [{ name: 'Shop\r\nBcc: all@example.com' }, /^mailTexts: name must be .* in one line/],
    [{ name: 'Shop', languages: [] }, /^mailTexts: languages must be a list of languages/],
    [{ name: 'Shop', languages: [without] }, /^mailTexts: languages must be/],
    [{ name: 'Shop', look: 'nice' }, /^mailTexts has no option "look"/]
  ]
  for (const [options, message] of mistakes) t.throws(() => mailTexts(options as never), { name: 'OptionsError', message })
  const languages = [de, en]
  const text = mailTexts({ name: 'Shop', languages })
  languages.shift()
  t.equal(text(mailOf('exists')).subject, `${de.kinds.exists.subject} - Shop`)
})

t.test('the mails that the plugin hands over are written as they are', async t => {
  const made = await startMailApp(t)
  await registerAt(made)
  const [mail] = made.mails.all
  const { text } = textOf(mail ?? mailOf('exists'))
  t.match(text, /^Hello,\n\nYour account has this address\.[^]*https:\/\/app\.example\/auth\/local\/verify-email\?token=[^]*1 day\./)
})
