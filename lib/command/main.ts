#!/usr/bin/env node
import { run } from './commands.js'

// A reader that has left, such as `head -1`, has what it wants.
process.stdout.on('error', () => { process.exit() })
run(process.argv.slice(2)).then(code => {
  process.exitCode = code
  // What the module of --app has opened does not keep the process.
  process.stdout.write('', () => { process.exit() })
})
