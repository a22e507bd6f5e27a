import Sqlite from 'better-sqlite3'
import { SqlAuthStore } from '../../lib/engines/sql.js'

// As a program: opens a store on the file of its first argument, and prints what it reports. The second one: on a connection of the
// application, or on another system.
const [, , file = '', how] = process.argv
const print = (...line: unknown[]): void => { process.stdout.write(`${JSON.stringify(line, (_, value) => value instanceof Error ? String(value) : value)}\n`) }
const connection = new Sqlite(how === 'application' ? file : ':memory:')
if (how === 'darwin') Object.defineProperty(process, 'platform', { value: how })
const store = new SqlAuthStore(how === 'application' ? connection : file)
await store.report({ warn: print, error: print })
await store.close()
connection.close()
