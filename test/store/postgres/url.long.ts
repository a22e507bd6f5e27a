import { onServer, testEngine } from './engine.js'

testEngine('a postgres: URL', onServer((_t, url) => url))
