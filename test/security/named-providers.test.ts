/** Attacks 14 to 17: what Entra, Google and GitHub may say of people, and must not be believed. */
import t, { type Test } from 'tap'
import { GitHubProvider, GoogleProvider, MicrosoftProvider } from '../../lib/index.js'
import { GitHubStandIn, apiError } from '../fakes/github.js'
import { GoogleStandIn } from '../fakes/google.js'
import { json } from '../fakes/lies.js'
import { CONTOSO, FABRIKAM, MicrosoftStandIn, PERSONAL } from '../fakes/microsoft.js'
import type { StandIn } from '../fakes/stand-in.js'
import { Browser } from '../helpers/browser.js'
import { signInAt } from '../helpers/own-provider.js'
import { some } from '../helpers/thorough.js'
import { type RefusalCode, assertRefused, assertSignsIn, withEverySessionStore } from '../helpers/under-attack.js'

/** The owner of an account at the honest provider: the one who is signed in where `assertRefused` asserts something. */
const GRACE = { subject: 'grace', email: 'grace@example.com' }

const clientOf = ({ clientId, clientSecret, fetch }: StandIn) => ({ clientId, clientSecret, fetch })
const atStandIn = (standIn: StandIn) => async (url: string) => standIn.authorize(url)

async function startEntra (t: Test, profile: Record<string, unknown> = {}): Promise<MicrosoftStandIn> {
  const entra = await new MicrosoftStandIn().start(t)
  Object.assign(entra.profile, profile)
  return entra
}

const PROMISES: Array<[tid: string, promise: Record<string, unknown>]> = [
  [PERSONAL, { email_verified: true }],
  ...[
    {},
    { email_verified: true },
    { email_verified: 'true' },
    { xms_edov: true },
    { xms_edov: '1' },
    { xms_edov: 1 },
    { email_verified: true, xms_edov: true, verified_primary_email: [GRACE.email] }
  ].map((promise): [string, Record<string, unknown>] => [FABRIKAM, promise])
]
for (const [tid, promise] of some(PROMISES, 6)) {
  const author = tid === PERSONAL ? 'a person' : 'a foreign tenant'
  withEverySessionStore(t, `attack 14: an address that ${author} wrote down opens no account, with ${JSON.stringify(promise)}`, async (t, start) => {
    const entra = await startEntra(t, { tid, email: GRACE.email, preferred_username: GRACE.email })
    entra.idTokenClaims = promise
    await assertRefused(t, await start(new MicrosoftProvider(clientOf(entra))), 'microsoft', 'account_exists', atStandIn(entra))

    const target = await start(new MicrosoftProvider(clientOf(entra)))
    const { userId } = await assertSignsIn(t, target, 'microsoft', atStandIn(entra), 'before the owner')
    const grace = new Browser(target.app)
    await signInAt(grace, 'honest', GRACE)
    t.not((await grace.get('/me')).json().principal.userId, userId)
  })
}

const issuer = (tid: string) => `https://login.microsoftonline.com/${tid}/v2.0`
const TENANTS: Array<[name: string, tenant: string, claims: Record<string, unknown>, code?: RefusalCode]> = [
  ['of another tenant', CONTOSO, { tid: FABRIKAM, iss: issuer(FABRIKAM) }],
  ['of another tenant with our issuer', CONTOSO, { tid: FABRIKAM }],
  ['with the issuer of another tenant', CONTOSO, { iss: issuer(FABRIKAM) }],
  ['without tid, where there is one tenant', CONTOSO, { tid: undefined }],
  ['of a personal account, where there is one tenant', CONTOSO, { tid: PERSONAL, iss: issuer(PERSONAL) }],
  // The token is a right one: the rule of the tenant refuses its account.
  ['of a personal account at organizations', 'organizations', { tid: PERSONAL, iss: issuer(PERSONAL) }, 'not_allowed'],
  ['of a personal account in upper case at organizations', 'organizations', { tid: PERSONAL.toUpperCase(), iss: issuer(PERSONAL.toUpperCase()) }],
  ...['organizations', 'common'].flatMap((tenant): Array<[string, string, Record<string, unknown>]> => [
    [`with the issuer of another tenant at ${tenant}`, tenant, { iss: issuer(FABRIKAM) }],
    [`of another tenant with the issuer of ours at ${tenant}`, tenant, { tid: FABRIKAM }],
    [`without tid at ${tenant}`, tenant, { tid: undefined }],
    [`whose tid is the gap of the template at ${tenant}`, tenant, { tid: '{tenantid}', iss: issuer('{tenantid}') }],
    [`whose tid is a path at ${tenant}`, tenant, { tid: '../x', iss: issuer('../x') }],
    [`whose tid is a list at ${tenant}`, tenant, { tid: [CONTOSO] }],
    [`of version 1 at ${tenant}`, tenant, { iss: `https://sts.windows.net/${CONTOSO}/` }],
    [`of another host at ${tenant}`, tenant, { iss: `https://evil.example/${CONTOSO}/v2.0` }],
    [`without oid at ${tenant}`, tenant, { oid: undefined }]
  ])
]
for (const [name, tenant, claims, code = 'provider_error'] of some(TENANTS, 4)) {
  withEverySessionStore(t, `attack 15: an ID token ${name} is refused`, async (t, start) => {
    const entra = await startEntra(t)
    const target = await start(new MicrosoftProvider({ ...clientOf(entra), tenant }))
    entra.idTokenClaims = claims
    await assertRefused(t, target, 'microsoft', code, atStandIn(entra))
    t.ok(entra.requests.every(({ path }) => path.startsWith(`/${tenant}/`)), 'the token decided on no request')
    entra.idTokenClaims = {}
    await assertSignsIn(t, target, 'microsoft', atStandIn(entra))
  })
}

withEverySessionStore(t, 'attack 15: one oid, or one sub, in three tenants is three users', async (t, start) => {
  const entra = await startEntra(t)
  const target = await start(new MicrosoftProvider(clientOf(entra)))
  const userIds = new Set<string>()
  for (const tid of [CONTOSO, FABRIKAM, PERSONAL]) {
    Object.assign(entra.profile, { tid, email: `somebody@${tid}.example` })
    userIds.add((await assertSignsIn(t, target, 'microsoft', atStandIn(entra))).userId)
  }
  t.equal(userIds.size, 3)
})

const DOMAINS: Array<[hostedDomain: string, hd: unknown]> = [
  ...[
    undefined, null, '', 'example.org', 'mail.example.com', 'evil-example.com', 'example.com.evil.example', '*',
    ['example.com'], { 0: 'example.com' }, true
  ].map((hd): [string, unknown] => ['example.com', hd]),
  ['*', undefined],
  ['*', ''],
  ['*', ['example.com']]
]
for (const [hostedDomain, hd] of some(DOMAINS, 6)) {
  const given = JSON.stringify(hd) ?? 'absent'
  withEverySessionStore(t, `attack 16: hd ${given} is refused where ${hostedDomain} is admitted, whatever the URLs say`, async (t, start) => {
    const google = await new GoogleStandIn().start(t)
    google.idTokenClaims = { hd }
    const target = await start(new GoogleProvider({ ...clientOf(google), hostedDomain }))
    await assertRefused(t, target, 'google', 'not_allowed', atStandIn(google))
    await assertRefused(t, target, 'google', 'not_allowed', async url => `${(await google.authorize(url)).replace(/&hd=[^&]*/, '')}&hd=example.com`)
    const { location = '' } = (await new Browser(target.app).get('/auth/google/login?hd=example.org&hd=')).headers
    t.strictSame(new URL(location).searchParams.getAll('hd'), [hostedDomain])
  })
}

const ids = ['583231', '', 0, -1, 1.5, 1e21, 2 ** 53, null, true, [583231], {}, undefined]
for (const id of some(ids, 6)) {
  withEverySessionStore(t, `attack 17: the id ${JSON.stringify(id) ?? 'absent'} belongs to no user`, async (t, start) => {
    const github = await new GitHubStandIn().start(t)
    github.user.id = id
    await assertRefused(t, await start(new GitHubProvider(clientOf(github))), 'github', 'provider_error', atStandIn(github))
  })
}

const EMAILS = 'GET api.github.com/user/emails'
const listed = (...flags: object[]) => (github: GitHubStandIn) => {
  github.lies.set(EMAILS, () => json(200, flags.map(flags => ({ email: GRACE.email, visibility: null, ...flags }))))
}
const ADDRESSES: Record<string, (github: GitHubStandIn) => void> = {
  'the primary one and unverified': listed({ primary: true, verified: false }),
  'verified, but not the primary one': listed({ primary: false, verified: true }),
  'primary and unverified, and once more verified': listed({ primary: true, verified: false }, { primary: false, verified: true }),
  'verified in words or numbers': listed({ primary: true, verified: 'true' }, { primary: true, verified: 1 }, { primary: 'true', verified: true }),
  'in the public profile alone': github => { github.emails = [] },
  'in the public profile of a user who may not be asked': github => { github.grants = ['read:user'] },
  'in the public profile, and the list is not found': github => { github.lies.set(EMAILS, () => apiError(404, 'Not Found')) },
  'in the public profile, and the list is nonsense': github => {
    github.lies.set(EMAILS, () => json(200, [null, GRACE.email, 7, [], { primary: true, verified: true }]))
  }
}
for (const [name, prepare] of some(Object.entries(ADDRESSES), 2)) {
  withEverySessionStore(t, `attack 17: an address that is ${name} leads to no account`, async (t, start) => {
    const github = await new GitHubStandIn().start(t)
    github.user.email = GRACE.email
    prepare(github)
    const { app, ...rest } = await start(new GitHubProvider(clientOf(github)))
    const grace = new Browser(app)
    await signInAt(grace, 'honest', GRACE)
    const { principal: owner } = (await grace.get('/me')).json()

    const { userId, claims } = await assertSignsIn(t, { app, ...rest }, 'github', atStandIn(github))

    t.not(userId, owner.userId)
    t.strictSame([claims.sub, claims.email, claims.email_verified], ['583231', undefined, undefined])
    t.match(await app.auth.findUser({ userId }), { email: null, emailVerified: false })
    t.strictSame((await app.auth.links(owner.userId)).map(({ provider }) => provider), ['honest'])
  })
}
