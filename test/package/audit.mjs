// Known vulnerabilities of what is installed with the package, `npm audit` without the tools of development, and of what it contains.
import { spawnSync } from 'node:child_process'

/** Bundled into the package: `npm audit` does not see it where the package is installed. */
const CONTAINED = ['drizzle-orm']

const installed = audit('--omit=dev')
const all = audit()

if (installed.vulnerabilities === undefined || all.vulnerabilities === undefined) {
  // Mirrors of the registry often do not pass these questions on.
  const { message } = installed.vulnerabilities === undefined ? installed : all
  console.warn(
    `NOT CHECKED: the registry knows nothing of vulnerabilities (${String(message).split(' - ', 1)[0]}); run "npm run check:audit" against one that does.`
  )
} else {
  const contained = CONTAINED.map(name => all.vulnerabilities[name]).filter(found => found !== undefined)
  const vulnerabilities = [...Object.values(installed.vulnerabilities), ...contained]
  for (const { name, severity, range } of vulnerabilities) console.error(`${name} ${range}: ${severity}; see "npm audit"`)
  console.log(`${vulnerabilities.length} known vulnerabilities in runtime dependencies`)
  process.exitCode = vulnerabilities.length === 0 ? 0 : 1
}

function audit (...options) {
  return JSON.parse(spawnSync('npm', ['audit', '--json', ...options], { encoding: 'utf8' }).stdout)
}
