import t from 'tap'
import type { Mail, NoticeMailKind } from '../../index.js'
import { type MailLanguage, ar, de, en, es, fr, ja, mailTexts } from '../../mails.js'
import { html } from '../../core/pages/elements.js'
import { foreignMarkIn } from '../../../test/helpers/foreign-marks.js'
import { ADA, registerAt, startMailApp } from '../../../test/helpers/mail-app.js'

const LANGUAGES = [en, de, es, fr, ar, ja]
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
      t.notMatch(`${text}${document.replace(/<style>[^]*<\/style>/, '')}`, /[{}]/, `${kind}: all names in braces are replaced`)
      t.notMatch(subject, /\d{6}/, 'no code in the subject')
      t.equal(text.includes(texts.lasts.split('{')[0] ?? ''), mail.expiresIn !== null, kind)
      t.ok(Buffer.byteLength(document) <= 30_000)
    }
    const subjects = KINDS.map(kind => texts.kinds[kind].subject)
    t.equal(new Set(subjects.filter((_, index) => KINDS[index] !== 'email-disputed')).size, subjects.length - 1)
  })

  t.test(`the texts in ${language} say all that English says, with the names that are replaced`, async t => {
    const flat = ({ kinds, ...others }: MailLanguage): Record<string, string> =>
      Object.assign({}, others, ...Object.entries(kinds).map(([kind, words]) =>
        Object.fromEntries(Object.entries(words).map(([name, text]) => [`${kind} ${name}`, text]))))
    const english = flat(en)
    const names = (text = ''): string[] => (text.match(/\{\w+\}/g) ?? []).sort()
    for (const [path, text] of Object.entries(flat(texts))) {
      t.strictSame(names(text), names(english[path]), path)
      t.equal(text, text.trim(), path)
      t.equal(foreignMarkIn(text, texts.language), undefined, `${path}: the punctuation of its script`)
      if (texts !== en && path !== 'direction') t.not(text, english[path], path)
      if (path.endsWith(' text')) t.match(text, /^[\p{Lu}\p{Lo}].*[.。]$/u, path)
      if (/ (?:subject|button)$/.test(path)) t.match(text, /^[\p{Lu}\p{Lo}\d].*[^.。]$/u, path)
    }
    t.strictSame(Object.keys(flat(texts)).sort(), Object.keys(english).sort())
  })
}

t.test('in text from right to left an address is isolated, and a code is in Latin digits where times are not', async t => {
  t.match(textOf({ ...mailOf('exists', { language: 'ar' }), to: '1st@example.com' }).text, ' \u20681st@example.com\u2069 ')
  const { text } = textOf(mailOf('sign-in', { language: 'ar-EG' }))
  t.match(text, /^مدة الصلاحية: ١٠ دقائق\.$/m)
  t.match(text, /^123456$/m)
})

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
  t.match(app(mailOf('reset-password')).html, `<a href="${html`${URL_OF_LINK}`.source}" `)
})

t.test('HTML loads nothing but the logo, and is as light and dark as the reader likes', async t => {
  const withLogo = mailTexts({ name: 'Shop', logo: { url: 'https://app.example/logo.png', width: 120, height: 40 } })
  for (const kind of KINDS) {
    const { html: document } = textOf(mailOf(kind))
    t.notMatch(document, /<(?:img|script|link|form|base|iframe)\b|src=|url\(|@import|@font-face/, kind)
    t.match(document, '<meta name="color-scheme" content="light dark">', kind)
    t.match(document, /@media \(prefers-color-scheme: dark\) \{(?:\s*\.\w+ \{ [^}]+ !important; \})+\s*\}/, kind)
    t.match(document, /<html lang="en" dir="ltr">[^]*<div role="article"[^>]* lang="en" dir="ltr">/, kind)
    const pictures = withLogo(mailOf(kind)).html.match(/<img [^>]*>/g) ?? []
    t.match(pictures, [/^<img src="https:\/\/app\.example\/logo\.png" width="120" height="40" alt="Shop" /], kind)
    t.equal(pictures.length, 1, kind)
  }
  const withWords = mailTexts({ name: 'Shop', logo: { url: 'https://a.example/b', width: 1, height: 1, alt: 'A "shop"' } })
  t.match(withWords(mailOf('exists')).html, 'alt="A &#34;shop&#34;"')
})

t.test('one button leads to the link of a mail, which is in words below it, and notices have none', async t => {
  for (const texts of LANGUAGES) {
    for (const kind of KINDS) {
      const mail = mailOf(kind, { language: texts.language })
      const { html: document } = textOf(mail)
      const buttons = document.match(/<td [^>]*bgcolor="#4f46e5"[^]*?<\/td>/g) ?? []
      const links = Array.from(document.matchAll(/ href="([^"]*)"/g), ([, href]) => href)
      const target = html`${mail.url ?? mail.accountUrl}`.source
      if (mail.url === null) {
        t.strictSame(buttons, [], kind)
        t.strictSame(links, mail.accountUrl === null ? [] : [target], kind)
      } else {
        t.match(buttons, [new RegExp(`<a href="[^"]+" [^>]*>${html`${texts.kinds[mail.kind].button}`.source}</a>`)], kind)
        t.equal(buttons.length, 1, kind)
        t.strictSame(links, [target, target], kind)
      }
    }
  }
})

t.test('the text of the button has a contrast of 4.5 to 1 on each brand, whose edge is seen on each card', async t => {
  const levels = ['00', '33', '66', '77', '99', 'cc', 'ff']
  const brands = levels.flatMap(red => levels.flatMap(green => levels.map(blue => `#${red}${green}${blue}`)))
  for (const brand of [...brands, '#757575', '#767676', '#777777']) {
    const { html: document } = mailTexts({ name: 'Shop', brand })(mailOf('reset-password'))
    const [, edge = '', color = ''] = /border: 1px solid (#\w{6});[^>]*mso-padding-alt[^>]*><a [^>]*; color: (#\w{6});/.exec(document) ?? []
    const [, darkEdge = ''] = /\.edge \{ border-color: (#\w{6}) !important; \}/.exec(document) ?? []
    const seen = [contrast(brand, color) >= 4.5, contrast(edge, '#ffffff') >= 1.5, contrast(darkEdge, '#151b26') >= 1.5]
    if (seen.includes(false)) t.fail(`${brand}: ${color}, ${edge}, ${darkEdge}`)
  }
})

/** As WCAG 2.2 defines it. */
function contrast (one: string, other: string): number {
  const luminances = [one, other].map(color => [0.2126, 0.7152, 0.0722].reduce((sum, weight, index) => {
    const part = Number.parseInt(color.slice(2 * index + 1, 2 * index + 3), 16) / 255
    return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  }, 0))
  return (Math.max(...luminances) + 0.05) / (Math.min(...luminances) + 0.05)
}

t.test('what clients list beside the subject is the beginning of the mail, at most 90 characters, and has no code', async t => {
  const preheader = ({ html: document }: { html: string }): string => /mso-hide: all">([^<]*)</.exec(document)?.[1] ?? ''
  for (const { language, kinds } of LANGUAGES) {
    for (const kind of KINDS) {
      const shown = preheader(textOf(mailOf(kind, { language })))
      t.ok(shown.length > 20 && shown.length <= 90, `${kind}: ${shown}`)
      t.match(kinds[kind].text.replace('{domain}', 'acme.example'), shown.replace(/…$/, ''), kind)
      t.match(shown, /[.。…]$/, kind)
    }
  }
  const withText = (text: string): string => preheader(mailTexts({
    name: 'Shop', languages: [{ ...en, kinds: { ...en.kinds, exists: { subject: 'Hello', text } } }]
  })(mailOf('exists')))
  t.equal(withText(`${'漢'.repeat(50)}。${'字'.repeat(50)}。`), `${'漢'.repeat(50)}。`, 'no blank follows a sentence')
  t.equal(withText('漢'.repeat(200)), `${'漢'.repeat(89)}…`)
  t.equal(withText(`${'a'.repeat(88)}👋${'b'.repeat(20)}`).isWellFormed(), true)
})

t.test('the reader learns from which browser, when and where a mail was caused, but not of requests of others', async t => {
  t.match(textOf(mailOf('new-browser', { language: 'en-GB' })).text,
    /\n\nWhere this came from:\nBrowser: unknown\nTime: \d+ \w+ 20\d\d at \d\d:\d\d \(UTC\)\n\nYour account:\nhttps:/)
  const asked: string[] = []
  const withPlace = mailTexts({
    name: 'Shop',
    place (ip) {
      asked.push(ip)
      return '<b>Berlin</b>\nBcc: x'
    }
  })
  const { text, html: document } = withPlace(mailOf('reset-password'))
  t.match(text, /\(UTC\)\nPlace: <b>Berlin<\/b>Bcc: x\n/)
  t.match(document, '<br>Place: <bdi translate="no">&#60;b&#62;Berlin')
  const about = { requestId: 'req-1', ip: null, userAgent: null, language: null }
  t.notMatch(withPlace({ ...mailOf('exists'), about }).text, 'Place:')
  t.strictSame(asked, ['127.0.0.1'])
  t.notMatch(mailTexts({ name: 'Shop', place: () => null })(mailOf('exists')).text, 'Place:')
  for (const mail of [mailOf('impersonated'), mailOf('token-replayed'), { ...mailOf('key-created'), about: { ...about, requestId: null } }]) {
    t.notMatch(textOf(mail).text, /Browser:|Time:/, mail.kind)
  }
})

t.test('each mail says why it came, and who sent it', async t => {
  const signed = mailTexts({ name: 'Shop', address: 'Shop GmbH, Hauptstr. 1 & 2, Berlin', support: 'help@shop.example' })
  for (const kind of KINDS) {
    const { text, html: document } = signed(mailOf(kind))
    t.match(text, new RegExp(`\n\nThis mail went to ${ADA.email} because [^\n]+\n\nQuestions\\?\nhelp@shop\\.example\n\n` +
      '-- \nShop\nShop GmbH, Hauptstr\\. 1 & 2, Berlin\n$'), kind)
    t.match(document, `This mail went to <bdi translate="no">${ADA.email}</bdi>`)
    t.match(document, /<a href="mailto:help@shop\.example" [^>]*>help@shop\.example<\/a>/)
    t.match(document, 'Shop<br>Shop GmbH, Hauptstr. 1 &#38; 2, Berlin')
  }
  const { text, html: document } = mailTexts({ name: 'Shop', support: 'https://shop.example/help' })(mailOf('exists'))
  t.match(text, '\nhttps://shop.example/help\n\n-- \nShop\n')
  t.match(document, '<a href="https://shop.example/help"')
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
    [{ name: 'Shop', languages: [{ ...en, kinds: { ...en.kinds, register: en.kinds.exists } }] }, /^mailTexts: languages must be/],
    [{ name: 'Shop', look: 'nice' }, /^mailTexts has no option "look"/],
    ...['red', '#fff', '#4f46e5;', '#4f46e5" onload="', 0x4f46e5].map((brand): [object, RegExp] =>
      [{ name: 'Shop', brand }, /^mailTexts: brand must be a color of six digits/]),
    ...['http://shop.example/a.png', 'javascript:alert(1)', 'data:image/png;base64,AAAA', '/a.png'].map((url): [object, RegExp] =>
      [{ name: 'Shop', logo: { url, width: 1, height: 1 } }, /^mailTexts: logo\.url must be an https: URL/]),
    [{ name: 'Shop', logo: { url: 'https://shop.example/a.png', width: 600, height: 1 } }, /^mailTexts: logo\.width must be .* from 1 to 320/],
    [{ name: 'Shop', logo: { url: 'https://shop.example/a.png', width: 1 } }, /^mailTexts: logo\.height must be/],
    [{ name: 'Shop', logo: { url: 'https://shop.example/a.png', width: 1, height: 1, alt: 'a\nb' } }, /^mailTexts: logo\.alt must be/],
    [{ name: 'Shop', address: 'Shop\nBerlin' }, /^mailTexts: address must be .* in one line/],
    ...['javascript:alert(1)', 'http://shop.example', 'nobody'].map((support): [object, RegExp] =>
      [{ name: 'Shop', support }, /^mailTexts: support must be an e-mail address or an https: URL/]),
    [{ name: 'Shop', place: 'Berlin' }, /^mailTexts: place must be a function/]
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
