import postgres from 'postgres'
import { SqlAuthStore } from '../../../lib/index.js'
import { isSoon } from '../../helpers/soon.js'

// As a program: connects a store to the URL that is its first argument, looks into the database if the second one says so, and never closes it.
const [,, url = '', what] = process.argv
const store = new SqlAuthStore(url)
store.connect()
if (what === 'report') await store.report(console)
const client = postgres(url, { max: 1 })
const isConnected = await isSoon(async () => {
  const rows = await client`select from pg_stat_activity
    where application_name = 'fastify-svc-auth' and state = 'idle' and datname = current_database()`
  return rows.length === 1
})
await client.end()
process.send?.(isConnected ? 'connected' : 'not connected', () => { process.disconnect() })
