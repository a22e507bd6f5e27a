/** One process of the cluster: the demonstration, which says on each page that this process has answered. */
import Fastify from 'fastify'
import { LOGGER, mountApp } from '../demo/app.js'
import { openDatabase } from '../demo/database.js'
import { devClient } from '../demo/dev-client.js'

const { BASE_URL: baseUrl = '', DEV_PROVIDER_URL = '', DEV_PROVIDER_SECRET = '' } = process.env

// All requests come through the front, which says whose they are.
const app = Fastify({ logger: LOGGER, trustProxy: '127.0.0.1' })
app.addHook('onSend', async (_request, _reply, payload) => {
  const note = `<p>Process ${process.pid} answered.</p>`
  return typeof payload === 'string' ? payload.replace('</main>', `${note}</main>`) : payload
})
const database = openDatabase()
const providers = [devClient(DEV_PROVIDER_URL, DEV_PROVIDER_SECRET)]
await mountApp(app, { baseUrl, providers, database, mailbox: null, verify: 'later' })

const close = async () => {
  await app.close()
  database.close()
}
process.once('SIGINT', close).once('SIGTERM', close).once('disconnect', close)
process.channel?.unref() // waiting for the end of the process that has started this one must not keep it alive

process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }))
