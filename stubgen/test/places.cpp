// The places in which a name can stand in an interface, and a test that puts every name into each of them.
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

/// An interface with the declarations that the places below refer to, followed by `body`.
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

/// Parameters and results of all kinds in turn, sixty names per procedure.
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

/// `declare` declares a type with a given name. Records contain these types; procedures and callbacks pass them in each
/// direction; eight names per procedure.
template <class Declare>
std::string values(const List& names, const Declare& declare) {
  std::string body;
  std::string callback;
  for (std::size_t i = 0; i < names.size(); i += 8) {
    std::string members = "z1: E0; ";
    std::string passed = "z2: bool";
    std::string results = "z3: bool";
    for (std::size_t k = i; k < std::min(i + 8, names.size()); ++k) {
      body += declare(names[k]) + "\n";
      members += fmt::format("a{0}: {1}; b{0}: {1}[2]; ", k, names[k]);
      passed += fmt::format(", {}a{}: {}", k % 2 == 0 ? "" : "inout ", k, names[k]);
      results += fmt::format(", b{}: {}{}", k, names[k], k % 2 == 0 ? "" : "[2]");
    }
    body += fmt::format("record R{}_0 {{ {}}}\n", i, members);
    body += fmt::format(
        "procedure P{0}_0({1}, r1: R{0}_0, inout h1: bytes<8>) -> ({2}, r2: R{0}_0, h2: string<8>) raises (X0);\n", i,
        passed, results);
    callback +=
        fmt::format("procedure P{0}_0({1}, r1: R{0}_0) -> ({2}, r2: R{0}_0) raises (X0);\n", i, passed, results);
    body += fmt::format("procedure Q{0}_0(inout a1: {1}, inout h1: string<8>) -> (h2: bytes<8>);\n", i, names[i]);
  }
  return with_base(body + "procedure Last0();\ncallback {\n" + callback + "procedure Last0();\n}\n");
}

/// The same for types that no record can contain: `declare` declares one and `use` passes it; eight names per
/// procedure, whose text begins with `head` and ends with `tail`.
std::string others(const List& names, std::string_view declare, std::string_view use, std::string_view head,
                   std::string_view tail) {
  std::string body;
  for (std::size_t i = 0; i < names.size(); i += 8) {
    std::string used;
    for (std::size_t k = i; k < std::min(i + 8, names.size()); ++k) {
      body += fmt::format(fmt::runtime(declare), names[k]);
      used += (used.empty() ? "" : ", ") + fmt::format(fmt::runtime(use), names[k], k);
    }
    body += fmt::format("procedure P{}_0{}{}{}\n", i, head, used, tail);
  }
  return with_base(body + "procedure Last0();\n");
}

std::string aliases(const List& names) {
  return values(names, [](const std::string& name) { return "type " + name + " = int32 range 1 .. 9;"; });
}
std::string enums(const List& names) {
  return values(names, [](const std::string& name) { return "enum " + name + " : uint8 { A, B = 7 }"; });
}
std::string records(const List& names) {
  return values(names, [](const std::string& name) { return "record " + name + " { a: E0; b: string<4>; }"; });
}
std::string errors(const List& names) {
  return others(names, "error {} {{ a: E0; }}\n", "{}", "(a2: int32) -> (e2: string<4>) raises (", ");");
}
std::string handles(const List& names) {
  return others(names, "handle {};\n", "a{1}: {0}, b{1}: {0} closes, out c{1}: {0}", "(", ") raises (X0);");
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

/// Whether C++ or the language itself forbids the name, rather than a conflict with generated code. Types and
/// namespaces cannot be called `std` or `lrpc`, the two namespaces that generated code uses.
bool refused_by_the_language(const Compiled& compiled, const std::string& name) {
  if (name == "std" || name == "lrpc") return compiled.says("'" + name + "' cannot be the name of a ");
  return std::ranges::any_of(
      List{"is a word of C++", "is a macro", "may not begin or end with '_'", "is a built-in type",
           "is kept for a type of a later version", "is declared twice", "cannot be a C++ namespace"},
      [&](const std::string& why) {
        return compiled.says("'" + name + "' " + why) || compiled.says(name + "': a name " + why);
      });
}

/// The names that are accepted when they stand alone. Each other name must be refused with a note; if `free`, only C++
/// or the language may refuse it.
List accepted(const Place& place, const Names& names, bool free) {
  List fine;
  for (const std::string& name : names) {
    const auto compiled = compile_text(place.alone(name));
    if (compiled.interface) {
      fine.push_back(name);
      continue;
    }
    EXPECT_TRUE(compiled.says("note: ")) << place.what << " " << name << ": " << compiled.diagnostics;
    EXPECT_TRUE(!free || refused_by_the_language(compiled, name)) << place.what << ": " << compiled.diagnostics;
  }
  return fine;
}

/// Only the lines with errors and warnings, without quoted code.
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
    compiler.generate_types(stem, place.alone(name));
    includes.push_back(stem + ".types.h");
  }
  // The libraries come first: an interface must not have the name of one of their declarations.
  compiler.generate("first", "interface First0 version 1.0 { procedure P(); callback { procedure Q(); } }");
  List all = all_of("first");
  all.insert(all.end(), includes.begin(), includes.end());
  EXPECT_EQ(shortened(compiler.compile(all)), "") << place.what;
}

/// Leaves out the names that with_base() declares itself.
void all_together(Compiler& compiler, const Place& place, List names) {
  while (!names.empty()) {
    const auto compiled = compile_text(place.together(names));
    if (compiled.interface) break;
    const auto end = std::stable_partition(names.begin(), names.end(), [&](const auto& name) {
      return !compiled.says("'" + name + "' is declared twice");
    });
    ASSERT_TRUE(end != names.end()) << place.what << ": " << compiled.diagnostics;
    names.erase(end, names.end());
  }
  if (names.empty()) return;
  compiler.generate("all", place.together(names));
  EXPECT_EQ(shortened(compiler.compile(all_of("all"))), "") << place.what;
}

}  // namespace

const std::vector<Place>& places() {
  static const std::vector<Place> kAll = {
      {"enumerator", [](const std::string& name) { return declaring("enum E : uint8 { " + name + " }"); }, enumerators},
      {"field", [](const std::string& name) { return declaring("record R { " + name + ": int32; }"); }, fields},
      {"parameter", [](const std::string& name) { return declaring("procedure P(" + name + ": int32);"); }, parameters},
      {"type", [](const std::string& name) { return declaring("type " + name + " = int32;"); }, aliases},
      {"enum", [](const std::string& name) { return declaring("enum " + name + " : uint8 { A }"); }, enums},
      {"record", [](const std::string& name) { return declaring("record " + name + " { a: int32; }"); }, records},
      {"error", [](const std::string& name) { return declaring("error " + name + ";"); }, errors},
      {"handle", [](const std::string& name) { return declaring("handle " + name + ";"); }, handles},
      {"procedure", [](const std::string& name) { return declaring("procedure " + name + "();"); }, procedures},
      {"callback_procedure",
       [](const std::string& name) { return declaring("callback { procedure " + name + "(); }"); },
       callback_procedures},
      {"interface", [](const std::string& name) { return "interface " + name + " version 1.0 { procedure Last(); }"; },
       nullptr},
      {"namespace", [](const std::string& name) { return declaring("option namespace = \"" + name + "::inner\";"); },
       nullptr},
      {"namespace_in_lrpc",
       [](const std::string& name) { return declaring("option namespace = \"lrpc::" + name + "\";"); }, nullptr},
      {"interface_in_lrpc",
       [](const std::string& name) {
         return "interface " + name + " version 1.0 { option namespace = \"lrpc\"; procedure Last(); }";
       },
       nullptr},
      {"inner_namespace",
       [](const std::string& name) { return declaring("option namespace = \"outer::" + name + "\";"); }, nullptr},
  };
  return kAll;
}

Names generated_identifiers() {
  std::vector<std::string> texts = {places().front().alone("name")};
  for (const Place& place : places()) {
    if (place.together != nullptr) texts.push_back(place.together({"name"}));
  }
  Names found;
  for (const std::string& text : texts) {
    const auto compiled = compile_text(text);
    EXPECT_TRUE(compiled.interface) << compiled.diagnostics;
    for (const Header& header : generate(*compiled.interface, "t")) found.merge(identifiers(header.text));
    found.merge(identifiers(generate_fuzzer(*compiled.interface, "t").text));
  }
  return found;
}

Names expect_free_one_by_one(const Place& place, const Names& names) {
  Compiler compiler;
  Names moved;
  std::string code;
  for (const std::string& name : names) {
    std::string text = place.together({name});
    const std::string stem = fmt::format("moved{}", moved.size());
    text.insert(text.find(" version"), stem);
    const auto compiled = compile_text(text);
    if (!compiled.interface) continue;
    // The head of each generated file lists the renamed declarations.
    const std::string types = generate(*compiled.interface, stem)[0].text;
    if (types.substr(0, types.find("#pragma once")).find(name + "_") == std::string::npos) continue;
    moved.insert(name);
    compiler.generate(stem, text);
    code += fmt::format("#define LLVMFuzzerTestOneInput fuzz_{}\n", stem);
    for (const std::string& file : all_of(stem)) code += fmt::format("#include \"{}\"\n", file);
    code += "#undef LLVMFuzzerTestOneInput\n";
  }
  EXPECT_EQ(shortened(compiler.compile({}, code)), "") << place.what;
  return moved;
}

void expect_refused_or_compiled(const Place& place, const Names& names, bool free) {
  Compiler compiler;
  const List fine = accepted(place, names, free);
  if (place.together != nullptr) {
    all_together(compiler, place, fine);
  } else if (!fine.empty()) {
    each_alone(compiler, place, fine);
  }
}

}  // namespace lrpc::stubgen::test
