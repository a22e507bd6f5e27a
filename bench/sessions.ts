import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { postgresServer } from './parts/postgres-server.js'
import { redisServer } from './parts/redis-server.js'
import { type Rival, application, rivalry } from './parts/rivals.js'
import { type Server, ask, startServer } from './parts/server.js'
import { ADA, PATHS } from './sessions/ada.js'

/** Shows what a page for those who are signed in costs when sessions and users are kept in Postgres, or sessions in Redis beside it. */

const { dialects, isShort } = benchOptions()
const PROGRAM = new URL('sessions/server.ts', import.meta.url)

if (dialects.includes('postgres')) {
  const postgres = await postgresServer()
  const redis = await redisServer()
  const others = ['connect-pg-simple', 'connect-redis', 'better-auth']
  console.log(`${machine('fastify', '@fastify/session', 'postgres', ...others, '@fastify/passport')}\n`)
  console.log(`A page for those who are signed in, users in Postgres ${postgres.version}${redis === null ? '' : `, Redis ${redis.version}`}\n`)
  if (redis === null) console.log('redis-server is not installed: without it\n')
  const names = Object.keys(PATHS).filter(name => redis !== null || !name.includes('Redis'))
  const servers = await Promise.all(names.map(async name => ({
    name, server: await startServer(PROGRAM, name, await postgres.createDatabase(), redis?.url ?? '')
  })))
  try {
    console.log(await rivalry(await Promise.all(servers.map(async ({ name, server }) => member(name, server))), { isShort }))
  } finally {
    for (const { server } of servers) await server.end()
    await redis?.stop()
    await postgres.stop()
  }
}

async function member (name: string, server: Server): Promise<Rival> {
  const { signIn, page } = PATHS[name as keyof typeof PATHS]
  const { headers: { 'set-cookie': cookies } } = await ask(server, {
    method: 'POST', path: signIn, headers: { accept: 'application/json', 'content-type': 'application/json' }, body: JSON.stringify(ADA)
  })
  const cookie = [cookies].flat().map(text => String(text).split(';')[0]).join('; ')
  return application(name, server.origin, () => ({ method: 'GET', path: page, headers: { cookie } }), ADA.email)
}
