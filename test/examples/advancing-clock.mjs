/** Preloaded by a process: with each SIGUSR2 its clock is an hour ahead of where it was. */
const HOUR_MS = 3_600_000

const { now } = Date
let ahead = 0
Date.now = () => now() + ahead

process.on('SIGUSR2', () => {
  ahead += HOUR_MS
  console.log(`The clock is ${ahead / HOUR_MS} h ahead.`)
})
