import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { DiscordProvider } from '../../examples/discord-provider.js'
import { DiscordStandIn } from '../fakes/discord.js'
import { providerContract } from '../providers/contract.js'

const ROOT = join(import.meta.dirname, '../..')
const source = await readFile(join(ROOT, 'examples/discord-provider.ts'), 'utf8')

const CLAIMS = {
  sub: '80351110224678912',
  name: 'nelly',
  email: 'nelly@example.com',
  picture: 'https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea3675442027381ff50dfe.png'
}

providerContract(t, {
  start: async t => new DiscordStandIn().start(t),
  provider: ({ clientId, clientSecret, fetch }, options) => new DiscordProvider({ clientId, clientSecret, fetch, ...options }),
  claims: CLAIMS,
  changeProfile: standIn => { standIn.user = { ...standIn.user, username: 'nelly.the.elephant', avatar: null } },
  changedClaims: { sub: CLAIMS.sub, name: 'nelly.the.elephant', email: CLAIMS.email },
  hideEmail: standIn => { standIn.user = { ...standIn.user, email: null, verified: false } },
  endpoints: ['POST discord.com/api/oauth2/token', 'GET discord.com/api/users/@me']
})

t.test('the documentation shows this very provider, of about 30 lines', async t => {
  const page = await readFile(join(ROOT, 'docs/own-provider.md'), 'utf8')
  t.ok(page.includes(`\`\`\`ts\n${source}\`\`\``))
  t.ok(source.split('\n').length <= 32)
})
