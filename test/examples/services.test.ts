import t from 'tap'
import { LocalIdentityProvider } from '../../lib/index.js'
import { ExampleProcess, type Settings, settingsFor } from './example-process.js'

const LOCAL_IDP_SECRET = 'a-secret-that-both-of-them-know.'
const local = new LocalIdentityProvider({ secret: LOCAL_IDP_SECRET })
const { PORT, DEV_PROVIDER_PORT } = await settingsFor(t)
const reportsUrl = `http://localhost:${PORT}`
const dashboardUrl = `http://localhost:${DEV_PROVIDER_PORT}`

const reports = await start('services/reports.ts', { PORT, LOCAL_IDP_SECRET })

t.test('the dashboard shows the report, which knows who asked for it', async t => {
  const dashboard = await start('services/dashboard.ts', { PORT: DEV_PROVIDER_PORT, LOCAL_IDP_SECRET, REPORTS_URL: reportsUrl })
  const response = await fetch(dashboardUrl)

  t.equal(response.status, 200)
  t.same(await response.json(), { report: { title: 'Sign-ins', total: 42, calledBy: 'dashboard' } })
  await dashboard.kill()
})

t.test('the report is for those with a token for reports alone', async t => {
  const otherIssuer = new LocalIdentityProvider({ secret: LOCAL_IDP_SECRET, issuer: 'another-issuer' })
  const strangers = {
    'no token': undefined,
    'a plain user': await local.issueIdToken('8c2f1a8e-5f0b-4c0e-9a86-0f5d3b1c7e42'),
    'another audience': await local.issueIdToken('dashboard', {}, 60, { audience: 'invoices' }),
    'a pre-authentication link': await local.issueIdToken('dashboard', {}, 60, { purpose: 'pre-auth' }),
    'an invitation': await local.issueIdToken('dashboard', { offers: 'admin' }, 60, { purpose: 'invitation' }),
    'a purpose for this audience': await local.issueIdToken('dashboard', {}, 60, { purpose: 'invitation', audience: 'reports' }),
    'another secret': await new LocalIdentityProvider({ secret: 'x'.repeat(32) }).issueIdToken('dashboard', {}, 60, { audience: 'reports' }),
    'another issuer': await otherIssuer.issueIdToken('dashboard', {}, 60, { audience: 'reports' })
  }
  for (const [who, token] of Object.entries(strangers)) {
    const response = await fetch(`${reportsUrl}/report`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })
    t.equal(response.status, 401, who)
    t.equal(response.headers.get('www-authenticate'), token === undefined ? 'Bearer' : 'Bearer error="invalid_token"')
  }
  const token = await local.issueIdToken('cron', {}, 60, { audience: 'reports' })
  t.match(await (await fetch(`${reportsUrl}/report`, { headers: { authorization: `Bearer ${token}` } })).json(), { calledBy: 'cron' })
})

t.test('a dashboard that is refused, or finds no service, says that there is no report, and why in its log', async t => {
  const settings = { PORT: DEV_PROVIDER_PORT, REPORTS_URL: reportsUrl }
  const stranger = await start('services/dashboard.ts', { ...settings, LOCAL_IDP_SECRET: 'x'.repeat(32) })
  t.equal((await fetch(dashboardUrl)).status, 502)
  await stranger.says(`${reportsUrl} answered 401`)
  await stranger.kill()

  await reports.kill()
  await start('services/dashboard.ts', { ...settings, LOCAL_IDP_SECRET })
  t.equal((await fetch(dashboardUrl)).status, 502)
})

async function start (script: string, settings: Settings): Promise<ExampleProcess> {
  const service = new ExampleProcess(t, [script], settings)
  await service.says('Ready: ')
  return service
}
