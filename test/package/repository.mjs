/**
 * Refuses to publish a package without `repository`: npm resolves the relative links of README against it, so that without it
 * each link to a guide leads nowhere.
 */
import { readFileSync } from 'node:fs'

const { repository } = JSON.parse(readFileSync('package.json', 'utf8'))
if (!/^git\+https:\/\/.+\.git$/.test(repository?.url)) {
  console.error('Set repository in package.json first, against which npm resolves the links of README:\n' +
    '  npm pkg set repository.type=git repository.url=git+https://….git')
  process.exit(1)
}
