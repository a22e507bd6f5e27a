import { drizzle } from 'drizzle-orm/node-postgres'
import { poolOf } from '../../helpers/postgres.js'
import { onServer, testEngine } from './engine.js'

testEngine('Drizzle on node-postgres', onServer((t, url) => drizzle(poolOf(t, url))))
