import t from 'tap'
import { type Texts, de, en, es, fr } from '../../lib/pages.js'
import { type AccountView, accountPage } from '../../lib/pages/account-page.js'
import {
  type EnrolView, type FactorsView, type PasskeysView, type SecondFactorView, type TotpView, enrolPage, factorsPage, recoveryCodesPage, secondFactorPage,
  totpPage
} from '../../lib/pages/factor-pages.js'
import { html } from '../../lib/pages/html.js'
import type { Page } from '../../lib/pages/page-layout.js'
import { type ConfirmView, type SignInView, confirmPage, signInPage } from '../../lib/pages/sign-in-pages.js'

const LANGUAGES = [en, de, es, fr]
const HOSTILE = '<script>alert("1")</script>'
const DAY = new Date('2026-07-06T12:00:00Z')
const TARGETS = { next: '/cart', error_next: '/auth/local/second-factor' }
const LEAVE = { logout: '/auth/logout', next: '/auth/pages/sign-in' }
const OPTIONS = '/auth/local/passkeys/options'
const PATHS = { options: OPTIONS, script: '/auth/local/passkeys/script.js?v=0123' }

const SECOND: SecondFactorView = {
  action: '/auth/local/second-factor', targets: TARGETS, hasCode: true, trustDays: 30, passkey: PATHS, leave: LEAVE
}
const TOTP: TotpView = {
  action: '/auth/local/totp/confirm',
  targets: TARGETS,
  svg: '<svg viewBox="0 0 9 9"><path d="M0,0h9"/></svg>',
  uri: 'otpauth://totp/Shop:ada%40example.com?secret=ABCDEFGH&issuer=Shop',
  secret: 'ABCD EFGH',
  issuer: 'Shop',
  asksMailCode: true,
  isRequired: true,
  leave: LEAVE
}
const PASSKEYS: PasskeysView = {
  ...PATHS,
  user: { rpId: 'shop.example', userId: 'dXNlcg', name: 'ada@example.com', displayName: 'Ada' },
  paths: { register: '/auth/local/passkeys/register', rename: '/auth/local/passkeys/rename', remove: '/auth/local/passkeys/remove' }
}
const FACTORS: FactorsView = {
  factors: [
    { id: 'app', kind: 'totp', name: null, createdAt: DAY, lastUsedAt: null, codesLeft: null },
    { id: 'codes', kind: 'recovery', name: null, createdAt: DAY, lastUsedAt: null, codesLeft: 7 },
    { id: 'a-1', kind: 'passkey', name: 'Phone', createdAt: DAY, lastUsedAt: DAY, codesLeft: null },
    { id: 'b_2', kind: 'passkey', name: 'Key', createdAt: DAY, lastUsedAt: null, codesLeft: null }
  ],
  passkeys: PASSKEYS,
  confirm: '/auth/pages/confirm',
  lost: '/auth/pages/factors?lost=true',
  account: '/auth/pages/account',
  saved: { next: '/auth/pages/factors?done=saved', error_next: '/auth/pages/factors' },
  paths: { enrol: '/auth/local/totp/enroll', removeApp: '/auth/local/totp/remove', newCodes: '/auth/local/recovery-codes' }
}
const NOTHING: FactorsView = {
  ...FACTORS, factors: [], passkeys: null, confirm: null, lost: null, account: null, paths: { enrol: null, removeApp: null, newCodes: null }
}
const SIGN_IN: SignInView = {
  targets: TARGETS, providers: [], login: '/auth/local/login', email: null, asksToRemember: true, forgotPassword: null, register: null, passkey: null
}
const WITH_PASSKEY: SignInView = { ...SIGN_IN, passkey: { ...PATHS, action: '/auth/local/passkeys/login', unknown: null } }
const ENROL: EnrolView = {
  action: '/auth/local/totp/enroll',
  targets: { ...TARGETS, error_next: '/auth/local/totp?next=%2Fcart' },
  isRequired: true,
  passkey: { ...PATHS, register: PASSKEYS.paths.register },
  asksMailCode: false,
  isMailed: false,
  leave: LEAVE
}
const CONFIRM: ConfirmView = {
  targets: TARGETS,
  user: 'Ada',
  email: null,
  action: '/auth/local/reauthenticate',
  asksCode: false,
  asksPassword: false,
  passkey: PATHS,
  providers: [],
  logout: '/auth/logout',
  signIn: '/auth/pages/sign-in'
}

const sourceOf = ({ title, content }: Page): string => html`<h1>${title}</h1>${content}`.source
const count = (text: string, part: string): number => text.split(part).length - 1
/** The text as it is written into HTML, without the values in braces. */
const piecesOf = (text: string): string[] => text.split(/\{\w+\}/).map(piece => html`${piece}`.source)

/** Every page, as each user may see it. */
const pagesIn = (texts: Texts): Page[] => [
  secondFactorPage(texts, SECOND), totpPage(texts, TOTP), totpPage(texts, { ...TOTP, isRequired: false }),
  recoveryCodesPage(texts, { codes: ['0123-4567-89AB-CDEF-GHJK-MNPQ'], next: '/' }), factorsPage(texts, FACTORS),
  factorsPage(texts, { ...FACTORS, factors: FACTORS.factors.slice(1) }), signInPage(texts, WITH_PASSKEY)
]

/** The opening tag of a field. */
function inputOf (page: Page, name: string): string {
  return new RegExp(`<input [^>]*name="${name}"[^>]*>`).exec(sourceOf(page))?.[0] ?? ''
}

/** What the script tells password managers. */
function signal (name: string, details: object): string {
  return html`<span hidden data-signal-${name}="${JSON.stringify(details)}"></span>`.source
}

/** The form that the script uses for a ceremony. */
function passkeyFormOf (page: Page, ceremony: string): string {
  return new RegExp(`<form [^>]*data-passkey="${ceremony}"[^]*?</form>`).exec(sourceOf(page))?.[0] ?? ''
}

t.test('each text of the second factors is on a page in each language, and nothing is left in braces', async t => {
  for (const texts of LANGUAGES) {
    const all = pagesIn(texts).map(sourceOf).join('')
    for (const [name, text] of Object.entries(texts.factors)) {
      for (const piece of piecesOf(text)) t.ok(all.includes(piece), `${texts.language}: ${name}`)
    }
    t.notMatch(all, /\{\w+\}/)
  }
})

t.test('the pages need neither scripts nor styles of their own, which their policy refuses', async t => {
  for (const page of pagesIn(en)) t.notMatch(sourceOf(page), /<script|<style|\sstyle=|\son\w+=/)
})

t.test('names, codes and keys stay text', async t => {
  const factors = [{ id: HOSTILE, kind: 'passkey', name: HOSTILE, createdAt: DAY, lastUsedAt: null, codesLeft: null }]
  const pages = [
    factorsPage(en, { ...FACTORS, factors, passkeys: { ...PASSKEYS, user: { ...PASSKEYS.user, name: HOSTILE } } }),
    totpPage(en, { ...TOTP, issuer: HOSTILE, secret: HOSTILE, uri: HOSTILE }),
    recoveryCodesPage(en, { codes: [HOSTILE], next: HOSTILE })
  ]
  for (const page of pages) {
    t.notMatch(sourceOf(page), /<script|alert\("/)
    t.match(sourceOf(page), '&#60;script&#62;alert(&#34;1&#34;)')
  }
})

t.test('one field takes the code of an app and a recovery code, in the way that browsers and phones know', async t => {
  const code = inputOf(secondFactorPage(en, SECOND), 'code')
  t.match(code, / type="text" .*autocomplete="one-time-code" required inputmode="text" dir="ltr" autocapitalize="off" spellcheck="false"/)
  t.match(inputOf(totpPage(en, TOTP), 'code'), /autocomplete="one-time-code" required inputmode="numeric"/)
  t.match(inputOf(totpPage(en, TOTP), 'mailCode'), /autocomplete="one-time-code" required inputmode="numeric"/)
  t.equal(inputOf(totpPage(en, { ...TOTP, asksMailCode: false }), 'mailCode'), '')
})

t.test('a user can trust the browser for the days that the application allows, in words', async t => {
  for (const [texts, days, words] of [[en, 30, '30 days'], [en, 1, '1 day'], [de, 30, '30 Tage'], [fr, 30, '30\u00a0jours'], [es, 30, '30 días']] as const) {
    t.match(sourceOf(secondFactorPage(texts, { ...SECOND, trustDays: days })), words)
  }
  t.equal(inputOf(secondFactorPage(en, { ...SECOND, trustDays: null }), 'trust'), '')
})

t.test('a user with passkeys alone is not asked for a code, and a user without any is not offered one', async t => {
  const passkeys = secondFactorPage(en, { ...SECOND, hasCode: false })
  t.equal(inputOf(passkeys, 'code'), '')
  t.match(passkeyFormOf(passkeys, 'factor'), 'name="trust"', 'the browser can be trusted')
  t.notMatch(passkeyFormOf(secondFactorPage(en, SECOND), 'factor'), 'name="trust"', 'the page asks once')

  const codes = secondFactorPage(en, { ...SECOND, passkey: null })
  t.notMatch(sourceOf(codes), /passkey|noscript/)
  t.notOk(codes.script)
  t.match(sourceOf(codes), '<form method="post" action="/auth/logout">')
})

t.test('a form for a passkey is hidden until a script shows it, and says so without scripts', async t => {
  for (const [page, ceremony, action, next] of [
    [secondFactorPage(en, SECOND), 'factor', SECOND.action, '/cart'],
    [factorsPage(en, FACTORS), 'register', PASSKEYS.paths.register, FACTORS.saved.next],
    [enrolPage(en, ENROL), 'register', PASSKEYS.paths.register, '/cart'],
    [confirmPage(en, CONFIRM), 'factor', CONFIRM.action, '/cart'],
    [signInPage(en, WITH_PASSKEY), 'login', '/auth/local/passkeys/login', '/cart']
  ] as const) {
    const form = passkeyFormOf(page, ceremony)
    t.ok(form.startsWith(`<form method="post" action="${action}" data-passkey="${ceremony}" data-options="${OPTIONS}" hidden>`), ceremony)
    t.match(form, '<input type="hidden" name="response">')
    t.match(form, `<input type="hidden" name="next" value="${next}">`)
    t.match(form, `<p role="alert" data-passkey-failed hidden>${en.factors.passkeyFailed}</p>`)
    t.equal(form.includes('data-passkey-exists hidden'), ceremony === 'register')
    t.match(sourceOf(page), `<p class="faint" data-passkey-missing hidden>${en.factors.passkeyMissing}</p>`)
    t.match(sourceOf(page), `<noscript><p class="faint">${en.factors.noScript}</p></noscript>`)
    t.equal(page.script, PATHS.script)
  }
})

t.test('an authenticator app is added by its picture, by a link or by its key', async t => {
  const page = sourceOf(totpPage(en, TOTP))
  t.match(page, `<div class="qr" role="img" aria-label="${en.factors.qrCode}"><svg viewBox="0 0 9 9">`)
  t.match(page, '<a href="otpauth://totp/Shop:ada%40example.com?secret=ABCDEFGH&#38;issuer=Shop">')
  t.match(page, '<code dir="ltr">ABCD EFGH</code>')
  t.notMatch(sourceOf(totpPage(en, { ...TOTP, svg: null })), /class="qr"/)
})

t.test('without a picture the link and the key are there', async t => {
  const source = sourceOf(totpPage(en, { ...TOTP, svg: null }))
  t.notMatch(source, /<svg|class="qr"/)
  t.match(source, 'ABCD EFGH')
})

t.test('a passkey without a name is shown by its id', async t => {
  const passkey = { id: 'a-1', kind: 'passkey' as const, name: null, createdAt: DAY, lastUsedAt: null, codesLeft: null }
  t.match(sourceOf(factorsPage(en, { ...FACTORS, factors: [passkey] })), '<span>a-1 ')
})

t.test('a user without an e-mail confirms by the password alone', async t => {
  const page = confirmPage(en, { ...CONFIRM, asksPassword: true })
  t.notMatch(sourceOf(page), 'autocomplete="username"')
  t.match(sourceOf(page), 'autocomplete="current-password"')
})

t.test('a user who has to set up a second step is told so, and can leave', async t => {
  const required = sourceOf(totpPage(en, TOTP))
  t.match(required, `<h1>${en.factors.requiredTitle}</h1>`)
  t.match(required, '<form method="post" action="/auth/logout">')
  const wanted = sourceOf(totpPage(en, { ...TOTP, isRequired: false, leave: { ...LEAVE, next: '/auth/pages/factors' } }))
  t.match(wanted, `<h1>${en.factors.setUp}</h1>`)
  t.notMatch(wanted, en.factors.requiredText)
  t.notMatch(wanted, 'action="/auth/logout"')
  t.match(wanted, `href="/auth/pages/factors">${en.common.back}`)
})

t.test('recovery codes are a list, each once, with the way on', async t => {
  const codes = ['0123-4567-89AB-CDEF-GHJK-MNPQ', 'RSTV-WXYZ-0123-4567-89AB-CDEF']
  const page = sourceOf(recoveryCodesPage(en, { codes, next: '/cart' }))
  for (const code of codes) t.equal(count(page, `<li><code dir="ltr">${code}</code></li>`), 1)
  t.match(page, `href="/cart">${en.common.continue}`)
  t.notMatch(page, '<form')
})

t.test('the page shows what a user has, with what they can do about it', async t => {
  const page = sourceOf(factorsPage(en, FACTORS))
  t.match(page, 'Added on July 6, 2026')
  t.match(page, 'Codes left: 7')
  t.match(page, `href="/auth/pages/confirm">${html`${en.confirm.title}`.source}`)
  const user = { rpId: 'shop.example', userId: 'dXNlcg' }
  t.match(page, signal('all-accepted-credentials', { ...user, allAcceptedCredentialIds: ['a-1', 'b_2'] }))
  t.match(page, signal('current-user-details', { ...user, name: 'ada@example.com', displayName: 'Ada' }))
  t.equal(count(page, 'Last used on July 6, 2026'), 1)
  t.equal(count(page, 'action="/auth/local/passkeys/rename"'), 2)
  t.match(page, 'aria-label="Remove Phone"')
  t.match(page, 'aria-label="Rename: Phone"')
  t.match(page, 'name="name" autocomplete="off" value="Phone" required maxlength="64"')
  t.notMatch(page, FACTORS.paths.enrol)

  const without = sourceOf(factorsPage(en, { ...FACTORS, factors: [] }))
  t.match(without, '<form method="post" action="/auth/local/totp/enroll">')
  t.notMatch(without, FACTORS.paths.removeApp)
  t.match(without, signal('all-accepted-credentials', { ...user, allAcceptedCredentialIds: [] }), 'the last one is gone')
})

t.test('the page shows nothing of what is not mounted, and no button for what is not allowed', async t => {
  t.equal(sourceOf(factorsPage(en, NOTHING)), `<h1>${en.factors.title}</h1>`)
  const kept = sourceOf(factorsPage(en, { ...NOTHING, factors: FACTORS.factors.slice(0, 2) }))
  t.match(kept, 'Added on July 6, 2026')
  t.match(kept, 'Codes left: 7')
  t.notMatch(kept, '<form')
})

t.test('the sign-in page offers passkeys where the application has them, in the field of the e-mail too', async t => {
  const page = signInPage(en, WITH_PASSKEY)
  t.match(inputOf(page, 'email'), 'autocomplete="username webauthn"')
  t.match(passkeyFormOf(page, 'autofill'), `data-options="${OPTIONS}" hidden>`)
  t.equal(count(sourceOf(page), 'name="remember"'), 1, 'the page asks once')
  t.notMatch(passkeyFormOf(page, 'login'), 'name="remember"')

  const passkeysAlone = signInPage(en, { ...WITH_PASSKEY, login: null })
  t.match(passkeyFormOf(passkeysAlone, 'login'), 'name="remember"')
  t.equal(passkeyFormOf(passkeysAlone, 'autofill'), '', 'there is no field')

  t.match(inputOf(signInPage(en, SIGN_IN), 'email'), 'autocomplete="username"')
  t.notMatch(sourceOf(signInPage(en, SIGN_IN)), /passkey|noscript/)
  t.notOk(signInPage(en, SIGN_IN).script)
})

t.test('a passkey that no user has is one that password managers are told of', async t => {
  const unknown = { rpId: 'shop.example', credentialId: 'a-1' }
  const passkey = { ...PATHS, action: '/auth/local/passkeys/login', unknown }
  t.match(sourceOf(signInPage(en, { ...WITH_PASSKEY, passkey })), signal('unknown-credential', unknown))
  t.notMatch(sourceOf(signInPage(en, WITH_PASSKEY)), 'unknown-credential')
})

t.test('a first passkey takes the code from an e-mail, which a form asks for before', async t => {
  const withCode = (isMailed: boolean): Page => {
    return enrolPage(en, { ...ENROL, asksMailCode: true, isMailed })
  }
  const before = withCode(false)
  t.equal(passkeyFormOf(before, 'register'), '')
  t.match(sourceOf(before), [
    `<form method="post" action="${OPTIONS}">\n<input type="hidden" name="next" value="/auth/local/totp?next=%2Fcart">`,
    '<input type="hidden" name="error_next" value="/auth/local/totp?next=%2Fcart">',
    '<input type="hidden" name="for" value="register">'
  ].join(''))
  t.match(passkeyFormOf(withCode(true), 'register'), 'name="mailCode" autocomplete="one-time-code" required')
  t.notMatch(passkeyFormOf(enrolPage(en, ENROL), 'register'), 'mailCode')
  t.notMatch(sourceOf(enrolPage(en, { ...ENROL, passkey: null })), /passkey|noscript/)
})

t.test('the account page leads to the page of the factors, where it is mounted', async t => {
  const view = (factors: string | null): AccountView => ({
    user: { name: null, email: null, isVerified: false },
    hasPassword: false,
    minLength: 8,
    methods: [],
    others: [],
    sessions: null,
    factors,
    passkeys: null,
    saved: TARGETS,
    sent: TARGETS,
    left: TARGETS,
    paths: {
      rename: null,
      removeMethod: null,
      changeEmail: null,
      verifyEmail: null,
      changePassword: null,
      setPassword: null,
      endSession: null,
      deleteAccount: null,
      logout: null
    }
  })
  t.match(sourceOf(accountPage(en, view('/auth/pages/factors'))), `href="/auth/pages/factors">${en.factors.title}`)
  t.notMatch(sourceOf(accountPage(en, view(null))), en.factors.title)
})
