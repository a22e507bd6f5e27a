import { emptyDatabase } from '../../helpers/postgres.js'
import { startProxy } from '../../helpers/tcp-proxy.js'
import { testTlsModes } from './tls-modes.js'

testTlsModes('attack 139: the modes of TLS at a proxy that speaks it', async (t, certificate) => (await startProxy(t, await emptyDatabase(t), certificate)).url)
