import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { settingsFor, startExample } from './example-process.js'

const settings = await settingsFor(t)
const url = `http://localhost:${settings.PORT}`
await startExample(t, settings)

t.test('the sign-in routes are documented, and nothing else', async t => {
  const document = JSON.parse(await (await fetch(`${url}/docs/json`)).text())

  t.strictSame(Object.keys(document.paths), [
    '/.well-known/change-password',
    '/.well-known/passkey-endpoints', '/auth/oauth/token', '/auth/oauth/revoke', '/.well-known/oauth-authorization-server',
    '/auth/dev-provider/login', '/auth/dev-provider/callback', '/auth/connections/{id}/login', '/auth/connections/{id}/callback',
    '/auth/connections/{id}/backchannel-logout', '/auth/local/register', '/auth/local/login',
    '/auth/local/token', '/auth/local/verify-token',
    '/auth/local/forgot-password', '/auth/local/reset-password', '/auth/local/verify-email',
    '/auth/local/change-password', '/auth/local/set-password', '/auth/local/change-email',
    '/auth/local/change-email/confirm', '/auth/local/delete-account',
    '/auth/local/mail-login', '/auth/local/mail-login/confirm',
    '/auth/local/second-factor', '/auth/local/totp', '/auth/local/totp/enroll', '/auth/local/totp/confirm', '/auth/local/totp/remove',
    '/auth/local/recovery-codes', '/auth/local/passkeys/options', '/auth/local/passkeys/register',
    '/auth/local/passkeys/login', '/auth/local/passkeys/rename', '/auth/local/passkeys/remove',
    '/auth/local/passkeys/script.js', '/auth/local/reauthenticate',
    '/auth/pages/sign-in', '/auth/pages/register', '/auth/pages/forgot-password', '/auth/pages/link-sent',
    '/auth/pages/confirm', '/auth/pages/account', '/auth/pages/factors', '/auth/pages/create-passkey', '/auth/pages/name', '/auth/pages/unlink',
    '/auth/oauth/authorize', '/auth/local/grants/end', '/auth/local/keys', '/auth/local/keys/end', '/auth/connections/start',
    '/auth/session', '/auth/logout', '/auth/local/revoke', '/auth/local/sessions/end', '/auth/local/impersonation/end',
    '/.well-known/oauth-protected-resource/api'
  ])
  t.strictSame(document.servers, [{ url }])
  t.strictSame(document.paths['/auth/local/token'].post.security, [{ session: [] }])
  t.strictSame(Object.keys(document.components.securitySchemes), ['session', 'bearer'])
  t.strictSame(await new Validator().validate(document), { valid: true })
})

t.test('the routes can be read and tried out under a policy without inline scripts, and the policy of the pages is unchanged', async t => {
  const policyOf = async (path: string) => (await fetch(url + path)).headers.get('content-security-policy') ?? ''
  const page = await fetch(`${url}/docs`)
  const text = await page.text()
  const files = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)

  t.equal(page.status, 200)
  t.notMatch(text, / style=| on[a-z]+=|<style|<script>/, 'nothing is inline')
  t.ok(files.includes('/docs/static/swagger-ui-bundle.js'))
  for (const path of files) t.equal((await fetch(url + path)).status, 200, path)
  for (const path of ['/docs', '/docs/', '/docs/json', '/docs/static/swagger-initializer.js']) {
    t.equal(
      await policyOf(path),
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action " +
        "'none'; base-uri 'none'; frame-ancestors 'none'",
      path
    )
  }
  t.equal(
    await policyOf('/nowhere'),
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action " +
      "'self'; base-uri 'none'; frame-ancestors 'none'"
  )
})
