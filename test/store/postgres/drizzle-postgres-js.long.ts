import { drizzle } from 'drizzle-orm/postgres-js'
import { clientOf } from '../../helpers/postgres.js'
import { onServer, testEngine } from './engine.js'

testEngine('Drizzle on postgres-js', onServer((t, url) => drizzle(clientOf(t, url))))
