// Reads a JSON list of stacks in TypeScript, compiles and synthesises each, and prints their templates.
const fs = require("node:fs");
const Module = require("node:module");
const ts = require("typescript");
const cdk = require("aws-cdk-lib");
const { Template } = require("aws-cdk-lib/assertions");

const templates = JSON.parse(fs.readFileSync(0, "utf8")).map((source) => {
  const options = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 };
  const made = ts.transpileModule(source, { compilerOptions: options, reportDiagnostics: true });
  if (made.diagnostics.length) throw new Error(made.diagnostics[0].messageText);
  const stack = new Module("stack");
  stack.paths = module.paths.concat(process.env.NODE_PATH);
  stack._compile(made.outputText, "stack.cjs");
  return Template.fromStack(new stack.exports.HoldallStack(new cdk.App(), "Stack")).toJSON();
});
console.log(JSON.stringify(templates));
