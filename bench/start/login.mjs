import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * An application in which Ada can log in: its name and the database are the arguments. With the third one, `fill`, it only puts Ada into the
 * database. It tells its origin; asked `held`, for how many milliseconds the event loop was held at most since then; and `memory`, the MiB
 * that are resident.
 */
const [name, database, fill] = process.argv.slice(2)

// Of one application, or the others would be loaded too.
const { application, addAda } = await import(`./login/${name}.mjs`)
const app = await application(database)
if (fill === 'fill') {
  await addAda(app, database)
  await app.close()
  process.disconnect()
} else {
  process.once('disconnect', () => process.exit())
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  process.on('message', question => {
    process.send(question === 'held' ? delay.max / 1e6 : process.memoryUsage.rss() / 2 ** 20)
  })
  process.send(origin)
}
