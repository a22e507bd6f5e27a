import { unusualClientOf } from './database.js'
import { onServer, testEngine } from './engine.js'

testEngine('a client of the package postgres with types and transformations of its own', onServer(unusualClientOf))
