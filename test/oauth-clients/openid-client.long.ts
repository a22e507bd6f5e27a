import * as oauth4webapi from 'oauth4webapi'
import * as openidClient from 'openid-client'
import t from 'tap'
import { Loopback, signedUp, startSite } from './site.js'

const site = await startSite(t)
const ada = await signedUp(site)
const loopback = await Loopback.listen(t)

const options: openidClient.DiscoveryRequestOptions = { execute: [openidClient.allowInsecureRequests], algorithm: 'oauth2' }

/** Calls the MCP server. */
async function call (token: string): Promise<number> {
  const { status } = await fetch(site.resource, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream', 'content-type': 'application/json'
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  })
  return status
}

t.test('openid-client: from registration to revocation', async t => {
  const metadata = { redirect_uris: [loopback.redirectUri], client_name: 'A client', token_endpoint_auth_method: 'none' }
  const config = await openidClient.dynamicClientRegistration(new URL(site.url), metadata, openidClient.None(), options)
  const { client_id: clientId } = config.clientMetadata()
  t.match(clientId, /^client_/)

  const verifier = openidClient.randomPKCECodeVerifier()
  const state = openidClient.randomState()
  const request = openidClient.buildAuthorizationUrl(config, {
    redirect_uri: loopback.redirectUri,
    scope: 'notes:read',
    resource: site.resource,
    code_challenge: await openidClient.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state
  })
  const answer = await loopback.allowedBy(ada, request)
  const callback = new URL(`${loopback.redirectUri}?${answer}`)
  // It insists on iss, which the metadata promise (RFC 9207).
  const tokens = await openidClient.authorizationCodeGrant(config, callback, { pkceCodeVerifier: verifier, expectedState: state })
  t.match(tokens, { token_type: 'bearer', expires_in: 600, scope: 'notes:read' })
  t.equal(await call(tokens.access_token), 200)

  const next = await openidClient.refreshTokenGrant(config, String(tokens.refresh_token))
  t.equal(await call(next.access_token), 200)
  await openidClient.tokenRevocation(config, String(next.refresh_token))
  t.equal(await call(next.access_token), 401)
  const error: unknown = await openidClient.refreshTokenGrant(config, String(next.refresh_token)).catch(error => error)
  t.match(error, { error: 'invalid_grant', status: 400 })
})

t.test('openid-client: the device grant', async t => {
  const config = await openidClient.discovery(new URL(site.url), 'notes-cli', undefined, openidClient.None(), options)
  const device = await openidClient.initiateDeviceAuthorization(config, { resource: site.resource })
  const tokens = openidClient.pollDeviceAuthorizationGrant(config, device)
  await ada.open(device.verification_uri)
  await ada.press('Continue', { user_code: device.user_code })
  await ada.press('Allow', { decision: 'allow' })

  t.equal(await call((await tokens).access_token), 200)
})

t.test('oauth4webapi: from the metadata of the resource to a token', async t => {
  const insecure = { [oauth4webapi.allowInsecureRequests]: true }
  const resourceUrl = new URL(site.resource)
  const resource = await oauth4webapi.processResourceDiscoveryResponse(
    resourceUrl, await oauth4webapi.resourceDiscoveryRequest(resourceUrl, insecure))
  const issuer = new URL(String(resource.authorization_servers?.[0]))
  const server = await oauth4webapi.processDiscoveryResponse(
    issuer, await oauth4webapi.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }))
  const client = await oauth4webapi.processDynamicClientRegistrationResponse(
    await oauth4webapi.dynamicClientRegistrationRequest(server, { redirect_uris: [loopback.redirectUri] }, insecure))

  const verifier = oauth4webapi.generateRandomCodeVerifier()
  const request = new URL(String(server.authorization_endpoint))
  request.search = String(new URLSearchParams({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: loopback.redirectUri,
    code_challenge: await oauth4webapi.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state: 'a state'
  }))
  const parameters = oauth4webapi.validateAuthResponse(server, client, await loopback.allowedBy(ada, request), 'a state')
  const response = await oauth4webapi.authorizationCodeGrantRequest(
    server, client, oauth4webapi.None(), parameters, loopback.redirectUri, verifier, insecure)
  const tokens = await oauth4webapi.processAuthorizationCodeResponse(server, client, response)

  t.equal(tokens.scope, 'notes:read notes:write', 'without a scope: all of the resource, which the page has shown')
  t.equal(await call(tokens.access_token), 200)
})
