/**
 * A program with ElectroDB, at the other end of a pipe.
 *
 * Each line of standard input is JavaScript to run, {"run": source, "with": values}; the source may use `await` and
 * `return`, and sees what earlier sources declared without indentation. Each line of standard output is the outcome,
 * {"ok": value, "printed": text} or {"error": message}.
 *
 * Run with NODE_PATH naming the installed packages, and the endpoint and credentials in the environment.
 */

const readline = require('readline')

const AsyncFunction = (async () => {}).constructor
const scope = {}
let printed = ''
console.log = (...values) => { printed += values.map(show).join(' ') + '\n' }

function show (value) {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function declared (source) {
  const found = [...source.matchAll(/^(?:const|let|function|class) (\w+)/gm)].map(match => match[1])
  const several = [...source.matchAll(/^(?:const|let) \{([^}]*)\}/gm)].flatMap(match => match[1].split(','))
  return [...found, ...several.map(name => name.split(':').at(-1).trim()).filter(Boolean)]
}

async function run (source, values) {
  source = source.replace(/^import (\{[^}]*\}) from ("[^"]*")/gm, 'const $1 = require($2)')
  const known = { ...scope, ...values }
  const keep = declared(source).map(name => `scope.${name} = ${name}`).join('; ')
  const body = `return (async () => {\n${source}\n;${keep}\n})()` // inside, names can be declared again
  const call = new AsyncFunction('require', 'scope', ...Object.keys(known), body)
  return call(require, scope, ...Object.values(known))
}

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line)
    let answer
    printed = ''
    try {
      answer = { ok: (await run(asked.run, asked.with)) ?? null, printed }
    } catch (error) {
      answer = { error: `${error.name}: ${error.message}` }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
}

main()
