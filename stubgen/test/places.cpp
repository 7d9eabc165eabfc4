// The places in which a name can stand, and every name put into each of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "compiler.h"
#include "test_support.h"

namespace lrpc::stubgen::test {
namespace {

using List = std::vector<std::string>;

std::string declaring(const std::string& declarations) {
  return "interface Alone version 1.0 { " + declarations + " procedure Last(); }";
}

/// Declarations that the places below refer to, then `body`.
std::string with_base(const std::string& body) {
  return "interface Together version 1.0 {\nenum E0 : uint8 { A0 = 1, B0 }\nrecord R0 { a0: E0; b0: string<4>; }\n"
         "error X0 { a0: E0; }\nhandle H0;\n" +
         body + "}";
}

std::string enumerators(const List& names) {
  std::string body;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i % 1000 == 0) body += fmt::format("{}enum E{} : uint16 {{ ", i == 0 ? "" : " }\n", i / 1000 + 1);
    body += names[i] + ", ";
  }
  return with_base(body +
                   "Z0 }\nrecord R1 { a1: E1; b1: E1[2]; }\nprocedure P0(inout a2: E1, b2: R1) -> (c2: E1[2]);\n");
}

std::string fields(const List& names) {
  const char* const types[] = {"int32", "bool", "string<4>", "E0", "E0[2][2]", "bool[2]", "byte[4]", "R0"};
  std::string body;
  std::size_t records = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i % 500 == 0) body += fmt::format("{0}record R{1} {{ z0: bool;\n", i == 0 ? "" : "}\n", ++records);
    body += fmt::format("{}: {};\n", names[i], types[i % std::size(types)]);
  }
  body += "}\nerror X1 { ";
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 500); ++i) body += names[i] + ": E0;\n";
  body += "z0: bool; }\n";
  for (std::size_t i = 1; i <= records; ++i)
    body += fmt::format("procedure P{0}(a2: R{0}, inout b2: R{0}[1]) -> (c2: R{0}) raises (X1);\n", i);
  return with_base(body);
}

/// The kinds of parameters and results in turn; sixty names a procedure.
std::string parameters(const List& names) {
  const char* const kinds[] = {"{}: bytes<10>",
                               "inout {}: bytes<9>",
                               "inout {}: string<9>",
                               "{}: H0",
                               "{}: H0 closes",
                               "{}: E0[2][2]",
                               "inout {}: R0",
                               "{}: byte[8] uninterpreted",
                               "inout {}: E0",
                               "{}: bytes<20> uninterpreted",
                               "out {}: bool[2]",
                               "out {}: bytes<10>",
                               "out {}: string<4>",
                               "out {}: E0[2]",
                               "{}: bool"};
  std::string body;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i % 60 == 0) body += fmt::format("{}procedure P{}(", i == 0 ? "" : ") raises (X0);\n", i / 60);
    body += i % 60 == 0 ? "" : ", ";
    body += fmt::format(fmt::runtime(kinds[i % std::size(kinds)]), names[i]);
  }
  return with_base(body + (names.empty() ? "procedure P0(" : "") + ") raises (X0);\n");
}

/// `declare` makes a type of a name. Records hold it, procedures pass it each way.
template <class Declare>
std::string types(const List& names, bool in_records, const Declare& declare) {
  std::string body;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    body += declare(name) + "\n";
    if (in_records) {
      body += fmt::format("record R{0}_0 {{ a1: {1}; b1: {1}[2]; c1: E0; d1: bool; }}\n", i, name);
      body += fmt::format(
          "procedure P{0}_0(a2: {1}, inout b2: {1}[2], d2: R{0}_0, inout h2: bytes<8>) -> (e2: {1}, f2: {1}[2], g2: "
          "R{0}_0);\n",
          i, name);
      body += fmt::format("procedure Q{0}_0(inout a2: {1}) -> (e2: bytes<8>) raises (X0);\n", i, name);
    }
  }
  return with_base(body + "procedure Last0();\n");
}

std::string aliases(const List& names) {
  return types(names, true, [](const std::string& name) { return "type " + name + " = int32 range 1 .. 9;"; });
}
std::string enums(const List& names) {
  return types(names, true, [](const std::string& name) { return "enum " + name + " : uint8 { A, B = 7 }"; });
}
std::string records(const List& names) {
  return types(names, true, [](const std::string& name) { return "record " + name + " { a: E0; b: string<4>; }"; });
}
std::string errors(const List& names) {
  return types(names, false, [](const std::string& name) {
    return fmt::format("error {0} {{ a: E0; }}\nprocedure P_{0}_0(a2: int32) -> (e2: string<4>) raises (X0, {0});",
                       name);
  });
}
std::string handles(const List& names) {
  return types(names, false, [](const std::string& name) {
    return fmt::format("handle {0};\nprocedure P_{0}_0(a2: {0}, b2: {0} closes) -> (e2: {0}) raises (X0);", name);
  });
}

std::string procedures(const List& names) {
  std::string body;
  const char* const shapes[] = {"procedure {}(a2: E0[2], inout b2: string<4>) -> (c2: R0, d2: bytes<9>) raises (X0);\n",
                                "procedure {}(a2: H0) -> (c2: R0);\n", "oneway procedure {}(a2: bytes<10>);\n"};
  for (std::size_t i = 0; i < names.size(); ++i) body += fmt::format(fmt::runtime(shapes[i % 3]), names[i]);
  return with_base(body + "procedure Last0();\n");
}

std::string callback_procedures(const List& names) {
  std::string body = "procedure Last0();\ncallback {\n";
  for (std::size_t i = 0; i < names.size(); ++i)
    body +=
        fmt::format("procedure {}(a2: E0[2], inout b2: string<4>) -> (c2: R0, d2: bytes<9>) raises (X0);\n", names[i]);
  return with_base(body + "procedure Last1();\n}\n");
}

/// Those of `names` that are accepted alone. Each of the others must be refused with a note.
List accepted(const Place& place, const Names& names) {
  List fine;
  for (const std::string& name : names) {
    const auto compiled = compile_text(place.alone(name));
    if (compiled.interface)
      fine.push_back(name);
    else
      EXPECT_TRUE(compiled.says("note: ")) << place.what << " " << name << ": " << compiled.diagnostics;
  }
  return fine;
}

/// The errors and warnings alone, without the lines of code around them.
std::string shortened(const std::string& said) {
  std::istringstream lines(said);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(": error: ") != std::string::npos || line.find(": warning: ") != std::string::npos)
      kept.append(line) += '\n';
  }
  return kept.empty() ? said : kept;
}

void each_alone(Compiler& compiler, const Place& place, const List& names) {
  List includes;
  for (const std::string& name : names) {
    const std::string stem = fmt::format("n{}", includes.size());
    compiler.generate(stem, place.alone(name));
    includes.push_back(stem + ".types.h");
  }
  // The libraries first: what they declare is what an interface's name may not be.
  compiler.generate("first", "interface First0 version 1.0 { procedure P(); callback { procedure Q(); } }");
  List all = all_of("first");
  all.insert(all.end(), includes.begin(), includes.end());
  EXPECT_EQ(shortened(compiler.compile(all)), "") << place.what;
}

/// Names that are refused beside others, whose generated code needs them, go into the next interface.
void all_together(Compiler& compiler, const Place& place, List names) {
  while (!names.empty()) {
    List later;
    for (;;) {
      const auto compiled = compile_text(place.together(names));
      if (compiled.interface) break;
      const auto refused = [&](const std::string& name) { return compiled.says("'" + name + "'"); };
      const auto end =
          std::stable_partition(names.begin(), names.end(), [&](const auto& name) { return !refused(name); });
      ASSERT_TRUE(end != names.end() && end != names.begin()) << place.what << ": " << compiled.diagnostics;
      later.insert(later.end(), end, names.end());
      names.erase(end, names.end());
    }
    compiler.generate("all", place.together(names));
    EXPECT_EQ(shortened(compiler.compile(all_of("all"))), "") << place.what;
    names = std::move(later);
  }
}

}  // namespace

const std::vector<Place> kPlaces = {
    {"enumerator", [](const std::string& name) { return declaring("enum E : uint8 { " + name + " }"); }, enumerators},
    {"field", [](const std::string& name) { return declaring("record R { " + name + ": int32; }"); }, fields},
    {"parameter", [](const std::string& name) { return declaring("procedure P(" + name + ": int32);"); }, parameters},
    {"type", [](const std::string& name) { return declaring("type " + name + " = int32;"); }, aliases},
    {"enum", [](const std::string& name) { return declaring("enum " + name + " : uint8 { A }"); }, enums},
    {"record", [](const std::string& name) { return declaring("record " + name + " { a: int32; }"); }, records},
    {"error", [](const std::string& name) { return declaring("error " + name + ";"); }, errors},
    {"handle", [](const std::string& name) { return declaring("handle " + name + ";"); }, handles},
    {"procedure", [](const std::string& name) { return declaring("procedure " + name + "();"); }, procedures},
    {"callback's procedure",
     [](const std::string& name) { return declaring("callback { procedure " + name + "(); }"); }, callback_procedures},
    {"interface", [](const std::string& name) { return "interface " + name + " version 1.0 { procedure Last(); }"; },
     nullptr},
    {"namespace", [](const std::string& name) { return declaring("option namespace = \"" + name + "::inner\";"); },
     nullptr},
    {"inner namespace",
     [](const std::string& name) { return declaring("option namespace = \"outer::" + name + "\";"); }, nullptr},
};

void expect_refused_or_compiled(const Names& names) {
  Compiler compiler;
  for (const Place& place : kPlaces) {
    const List fine = accepted(place, names);
    if (place.together != nullptr)
      all_together(compiler, place, fine);
    else
      each_alone(compiler, place, fine);
  }
}

}  // namespace lrpc::stubgen::test
