import { clientOf } from '../../helpers/postgres.js'
import { onServer, testEngine } from './engine.js'

testEngine('a client of the package postgres', onServer(clientOf))
