/** What users do with authenticator apps and recovery codes. */
import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Factor, FactorKind, User } from '../../accounts/account.js'
import { withoutFactors } from '../../accounts/factors.js'
import { audit } from '../../audit.js'
import { nextAuthenticationStep, pathOf } from '../../core/act.js'
import { newRecoveryCodes, recoveryHash } from './codes.js'
import { type Asking, type AuthContext, needed, sealerOf } from '../../core/context.js'
import { current } from '../../core/current-user.js'
import { type FormAnswer, form } from '../../core/form.js'
import {
  type Content, type Texts, Html, action, button, checkboxField, codeField, html, htmlForm, link, sentence, ways
} from '../../core/pages/elements.js'
import type { Page, View } from '../../core/pages/layout.js'
import { page, redirected, targetsOf } from '../../core/pages/page.js'
import { withQuery } from '../../core/redirects.js'
import { isChecked, objectOf } from '../../core/schema.js'
import { AuthError, WRONG_SET_UP_CODE } from '../../errors.js'
import { attemptEntry, findEntry, putEntry, takeEntry } from '../../session/lifecycle.js'
import { ENROLMENT } from '../../session/store.js'
import {
  type EnrollingUser, MAX_ATTEMPTS, addFactor, assertMailCode, assertNotRequired, changeOwnFactors, enrollingUser,
  requireRecentFactor, sendMailCode
} from './enrolment.js'
import { countAttempt, openSecret, readCode, stepOf } from './sign-in.js'
import { APP, RECOVERY, newTotpSecret, qrSvg, totpUri } from './totp.js'
import { hasFactorThat, scriptOf } from '../../core/methods.js'
import type { Submission } from '../../core/submission.js'
import { type FactorPages, type SetUp, mailCodeField } from './factor-pages.js'
import { hasSecondFactor } from './second-factor.js'
import { factorCode, lost, lostPasskeysIn, mailCode } from './schema.js'

/** An authenticator app before its first code. The secret is sealed for the id of the factor. */
interface PendingTotp {
  readonly userId: string
  readonly generation: number
  readonly id: string
  readonly secret: string
}

const enrolmentBody = objectOf('What the authenticator app is given', {
  uri: { type: 'string', description: 'An otpauth: URI' },
  secret: { type: 'string', description: 'Base32' },
  svg: { type: ['string', 'null'], description: 'The URI as a QR code; null without the package uqr, or if too long' }
})

const recoveryCodes = objectOf('The recovery codes: no other answer contains them', {
  recoveryCodes: { type: 'array', items: { type: 'string' } }
})

export const beginTotp = form({
  path: '/local/totp/enroll',
  when: hasSecondFactor,
  summary: 'Begin to set up an authenticator app',
  description: 'The last authentication must be less than ten minutes old, by a factor of the user if they have ' +
    'one. Nothing changes until a code confirms it.',
  user: 'signed-in-or-not',
  fields: { lost },
  answers: { 200: enrolmentBody },
  refuses: ['unauthenticated', 'reauthenticate', 'invalid_state', 'blocked'],
  limits: ['factor']
}, async (auth, submission) => {
  const { request, fields: { next = null, lost } } = submission
  const isLost = isChecked(lost)
  const { user, asksMailCode } = await enrollingUser(auth, request, isLost)
  const { userId, generation } = user
  const [id, secret] = [randomUUID(), newTotpSecret()]
  const pending: PendingTotp = { userId, generation, id, secret: await sealerOf(auth).seal(secret, id) }
  await putEntry(request, ENROLMENT, pending)
  if (asksMailCode) await sendMailCode(auth, submission, user)
  const page = withQuery(pathOf(auth, 'local/totp'), { next, lost: isLost ? 'true' : null })
  return { status: 200, body: await newApp(auth, user, secret), page }
})

/**
 * Confirms an authenticator app by its first code, which is spent. All other sessions of the user
 * end; a sign-in that waits for it is completed.
 */
export const confirmTotp = form({
  path: '/local/totp/confirm',
  when: hasSecondFactor,
  summary: 'Confirm an authenticator app by its first code',
  description: 'All other sessions of the user end. A sign-in that waits for it is finished.',
  user: 'signed-in-or-not',
  fields: { code: factorCode, lost, mailCode },
  required: ['code'],
  answers: { 200: recoveryCodes },
  refuses: ['unauthenticated', 'reauthenticate', 'invalid_code', 'invalid_state', 'blocked'],
  limits: ['factor'],
  isSignInAttempt: true,
  // No one has seen those of the first answer.
  async again (auth, submission) {
    const { user: { userId, generation } } = await current(auth, submission.request)
    const codes = newRecoveryCodes()
    const change = (factors: readonly Factor[]): Factor[] => withRecoveryCodes(factors, codes)
    const changed = await auth.accounts.changeFactors(userId, { generation, endsSessions: false, change })
    if (changed === null) throw new AuthError('invalid_state')
    return shown(auth, submission, codes)
  }
}, async (auth, submission) => {
  const { request, fields: { code, ...ofLost } } = submission
  const { isLost, mailCode } = lostPasskeysIn(ofLost)
  const typed = readCode(code)
  const enrolling = await enrollingUser(auth, request, isLost)
  const { user: { userId, generation }, asksMailCode } = enrolling
  const pending = await attemptEntry<PendingTotp>(request, ENROLMENT, MAX_ATTEMPTS)
  if (pending?.userId !== userId || pending.generation !== generation) throw new AuthError('invalid_state')
  await countAttempt(auth, submission, { userId, generation })
  if (asksMailCode) await assertMailCode(auth, request, userId, mailCode)
  const { id, secret } = pending
  const { text } = await openSecret(auth, request, pending)
  const step = typed.kind === APP ? stepOf(auth, text, typed.code) : null
  if (step === null) throw new AuthError('invalid_code', { message: WRONG_SET_UP_CODE })
  if (await takeEntry(request, ENROLMENT) === null) throw new AuthError('invalid_state')

  const codes = newRecoveryCodes()
  const totp = newFactor(APP, { id, secret, counter: step, usedAt: Date.now() })
  await addFactor(auth, submission, enrolling, {
    proof: { method: 'totp', at: Date.now() },
    endsSessions: true,
    change: factors => [...withRecoveryCodes(factors, codes).filter(({ kind }) => kind !== APP), totp]
  })
  return shown(auth, submission, codes)
})

/** Removes the authenticator app of the signed-in user; the recovery codes with the last factor. */
export const removeTotp = form({
  path: '/local/totp/remove',
  when: hasSecondFactor,
  summary: 'Remove the authenticator app of the signed-in user',
  description: 'The last second factor must be less than ten minutes old. All other sessions of the user end.',
  user: 'signed-in',
  fields: {},
  refuses: ['reauthenticate', 'invalid_state', 'forbidden', 'not_found']
}, async (auth, { request, outbox }) => {
  const { user, record } = await requireRecentFactor(auth, request)
  const { factors: kinds = [] } = user
  if (!kinds.some(kind => kind === APP)) {
    throw new AuthError('not_found', { message: 'This account has no authenticator app.' })
  }
  if (!hasFactorThat(auth, user, 'signsIn')) await assertNotRequired(auth, record)
  await changeOwnFactors(auth, request, record, factors => withoutFactors(factors, ({ kind }) => kind === APP))
  audit('factor-removed', { userId: user.userId, method: 'totp', by: 'user' }, request)
  outbox.notice('factor-removed', user)
})

export const renewRecoveryCodes = form({
  path: '/local/recovery-codes',
  when: hasSecondFactor,
  summary: 'Replace the recovery codes of the signed-in user',
  description: 'The last second factor must be less than ten minutes old. All other sessions of the user end.',
  user: 'signed-in',
  fields: {},
  answers: { 200: recoveryCodes },
  refuses: ['reauthenticate', 'invalid_state', 'second_factor_missing']
}, async (auth, submission) => {
  const { request } = submission
  const { user, record } = await requireRecentFactor(auth, request)
  if (user.factors === undefined) throw new AuthError('second_factor_missing')
  const codes = newRecoveryCodes()
  await changeOwnFactors(auth, request, record, factors => withRecoveryCodes(factors, codes))
  audit('recovery-codes', { userId: user.userId }, request)
  submission.outbox.notice('recovery-codes-renewed', user)
  return shown(auth, submission, codes)
})

/** Returns who sets up an app, and what the app is given; `app` is null before that has begun. */
async function pendingTotp (auth: AuthContext, request: FastifyRequest, isLost: boolean) {
  const enrolling = await enrollingUser(auth, request, isLost)
  const { user } = enrolling
  const pending = await findEntry<PendingTotp>(request, ENROLMENT)
  if (pending?.userId !== user.userId) return { enrolling, app: null }
  const { text } = await openSecret(auth, request, pending)
  return { enrolling, app: await newApp(auth, user, text) }
}

/** What an authenticator app is given: the URI with the secret, that in base32, the QR code. */
async function newApp (auth: Pick<AuthContext, 'parts'>, { email, name, userId }: User, secret: string) {
  const { issuer } = needed(auth.parts.secondFactor, 'secondFactor')
  const uri = totpUri({ issuer, account: email ?? name ?? userId, secret })
  return { uri, secret, svg: await qrSvg(uri) }
}

function shown (
  auth: AuthContext,
  { request, reply, fields: { next } }: Submission<{ next?: string }>,
  recoveryCodes: readonly string[]
): FormAnswer {
  const layout = needed(auth.layout, 'pages')
  const { common, factors } = layout.textsFor(request)
  const { issuer } = needed(auth.parts.secondFactor, 'secondFactor')
  // In the page itself: no other answer contains them.
  const file = encodeURIComponent(`${issuer}: ${factors.recoveryTitle}\n\n${recoveryCodes.join('\n')}\n`)
  return {
    status: 200,
    body: { recoveryCodes },
    show: () => layout.send(reply, {
      title: factors.recoveryTitle,
      content: [
        html`<p>${factors.recoveryText}</p>`,
        html`<ul class="codes">${recoveryCodes.map(code =>
          html`<li><code dir="ltr" translate="no">${code}</code></li>`)}</ul>`,
        html`<a class="button plain" data-part="link" download="recovery-codes.txt"
 href="data:text/plain;charset=utf-8,${file}">${factors.saveCodes}</a>`,
        checkboxField('saved', factors.codesSaved, false),
        button(auth.redirects.afterSuccess(request, next), common.continue, 'primary')
      ]
    })
  }
}

function newFactor (kind: FactorKind, content: Partial<Factor>): Factor {
  const id = randomUUID()
  return { id, kind, name: null, secret: null, data: {}, counter: 0, createdAt: Date.now(), usedAt: null, ...content }
}

function withRecoveryCodes (factors: readonly Factor[], codes: readonly string[]): Factor[] {
  return [...factors.filter(({ kind }) => kind !== RECOVERY), recoveryFactor(codes)]
}

function recoveryFactor (codes: readonly string[]): Factor {
  return newFactor(RECOVERY, { data: { hashes: codes.map(recoveryHash) } })
}

export const totpPage = page({ path: '/local/totp', when: hasSecondFactor }, async (auth, view) => {
  const { request, reply, texts, next, isLost } = view
  const here = withQuery(pathOf(auth, 'local/totp'), { next })
  const pending = await pendingTotp(auth, request, isLost).catch(async (error: unknown) => {
    const { code }: Partial<AuthError> = Object(error)
    const step = await nextAuthenticationStep(auth, request, error, { next: here, needing: here })
    const page = code === 'unauthenticated' ? auth.redirects.loginWith(request, here) : step?.page ?? null
    if (page === null) throw error
    return { page }
  })
  if ('page' in pending) return redirected(reply, pending.page)
  const { enrolling, app } = pending
  const setUp = setUpOf(auth, view, enrolling)
  if (app === null) return enrolPage(auth, view, setUp)
  const { uri, secret, svg } = app
  const { issuer } = needed(auth.parts.secondFactor, 'secondFactor')
  const { factors, confirm } = texts
  const key = secret.replace(/.{4}(?!$)/g, '$& ')
  return setUpPage(auth, texts, setUp, [
    html`<p>${sentence(factors.appText, { issuer })}</p>`,
    // Made by uqr of what we have made.
    svg && html`<div class="qr" role="img" aria-label="${factors.qrCode}">${new Html(svg)}</div>`,
    html`<p>${link(uri, factors.openApp)}</p>
<p>${factors.key}<br><code dir="ltr" translate="no">${key}</code></p>`,
    htmlForm({
      action: auth.formPaths.get('local/totp/confirm'),
      hidden: { ...setUp.targets, done: 'saved' },
      fields: [codeField('code', factors.appCode, 'numeric'), setUp.asksMailCode && mailCodeField(texts)],
      submit: confirm.submit
    })
  ])
})

/** The page on which a user begins to set up a factor. */
export async function enrolPage (auth: AuthContext, view: View, setUp: SetUp): Promise<Page> {
  const parts: Asking[] = []
  for (const { factor } of auth.offered) {
    const { enrol } = await factor?.pages?.() ?? {}
    const look = parts.length === 0 ? 'primary' : 'plain'
    if (enrol !== undefined) parts.push(await enrol(auth, view, { ...setUp, look }))
  }
  const content = ways(view.texts.signIn.or, ...parts.map(({ content }) => content))
  return { script: scriptOf(parts), ...setUpPage(auth, view.texts, setUp, content) }
}

/** What the pages of factors show of authenticator apps. */
export const APP_PAGES: FactorPages = {
  enrol: async (auth, { texts }, { targets, look }) => ({
    content: action(auth.formPaths.get('local/totp/enroll'), targets, texts.factors.setUp, { look })
  }),
  label: ({ factors }) => factors.app,
  item: ({ texts }) => ({ name: texts.factors.app, kind: null, remove: 'local/totp/remove', rename: null }),
  setUp: ({ auth, texts, own, saved, look }) => own.every(({ kind }) => kind !== APP) &&
    action(auth.formPaths.get('local/totp/enroll'), saved, texts.factors.setUp, { look })
}

export function setUpOf (
  auth: AuthContext, { request, next }: View, { waiting, asksMailCode }: Pick<EnrollingUser, 'waiting' | 'asksMailCode'>
): SetUp {
  const lost = asksMailCode && waiting === null ? 'true' : null
  return {
    targets: { ...targetsOf(auth, 'local/totp', { next, lost }), lost },
    asksMailCode,
    back: waiting === null ? auth.redirects.afterSuccess(request, next) : null
  }
}

function setUpPage (auth: Leaving, texts: Texts, { back }: SetUp, content: Content): Page {
  const { common, factors } = texts
  return {
    title: back === null ? factors.requiredTitle : factors.setUp,
    content: [
      back === null && html`<p>${factors.requiredText}</p>`,
      content,
      back === null ? leaveForm(auth, texts) : button(back, common.back, 'quiet')
    ]
  }
}

/** What the form by which a user leaves a sign-in is made of. */
type Leaving = Pick<AuthContext, 'formPaths' | 'redirects' | 'site'>

/** The form by which a user leaves a sign-in that waits, or goes on as another one. */
export function leaveForm (
  auth: Leaving, { confirm }: Texts, next = auth.redirects.application.login ?? auth.site.publicPath('/')
): Content {
  return action(auth.formPaths.get('logout'), { next }, confirm.signOut, { look: 'quiet' })
}
