#include "names.h"

#include <fmt/format.h>

#include <algorithm>

#include "c_names.h"
#include "language/lexer.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {
namespace {

// Names that the generated code uses in front of a '::', where only a type or a namespace can hide them.
constexpr std::string_view kReached[] = {"lrpc", "std"};
constexpr std::string_view kBuiltIn[] = {"bool",  "byte", "bytes",  "float32", "float64", "int16",  "int32",
                                         "int64", "int8", "string", "uint16",  "uint32",  "uint64", "uint8"};
// Types that the language may have in a later version.
constexpr std::string_view kLater[] = {"fd", "map", "optional", "ref", "sequence"};

template <std::size_t N>
bool contains(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

/// The same word in lower case or, if that is not allowed either, with a capital first letter: enoent or True.
std::string other_spelling(std::string_view macro) {
  std::string small(macro);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (small != macro && !is_macro(small) && !is_keyword(small)) return small;
  small.front() = static_cast<char>(small.front() - 'a' + 'A');  // no macro of the table begins with '_'
  return small;
}

}  // namespace

bool check_name(const ast::Name& name, NameUse use, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string why, std::string_view hint) {
    diagnostics.error(name.at, std::move(why), std::string(hint));
    return false;
  };
  const std::string& text = name.text;
  if (text.size() > limits::kMaxNameLength) {
    return refuse(fmt::format("this name has {} characters; the limit is {}", text.size(), limits::kMaxNameLength),
                  "choose a shorter name");
  }
  if (is_keyword(text)) {
    return refuse(fmt::format("'{}' is a word of C++ and cannot be a name in the generated code", text),
                  "choose another name, such as one that says more");
  }
  if (is_macro(text)) {
    return refuse(fmt::format("'{}' is a macro of {} and cannot be a name in the generated code", text,
                              text.starts_with("LRPC_") ? "lrpc" : "the C library"),
                  fmt::format("headers that the generated code includes define it; write '{}', for example",
                              other_spelling(text)));
  }
  if (text.starts_with('_') || text.ends_with('_') || text.find("__") != std::string::npos) {
    return refuse(fmt::format("'{}': a name may not begin or end with '_' nor hold '__'", text),
                  "such names belong to C++ and to the generated code");
  }
  if ((use == NameUse::space || use == NameUse::type) && contains(kReached, text)) {
    return refuse(fmt::format("'{0}' cannot be the name of a {1}: it would hide the namespace '{0}', which the "
                              "generated code uses",
                              text, use == NameUse::type ? "type" : "namespace"),
                  "choose another name; procedures, parameters, fields and enum values may have this one");
  }
  if (use != NameUse::member && contains(kBuiltIn, text))
    return refuse(fmt::format("'{}' is a built-in type", text), "choose another name");
  if (use != NameUse::member && contains(kLater, text))
    return refuse(fmt::format("'{}' is kept for a type of a later version", text), "choose another name");
  return true;
}

bool check_namespace(std::string_view value, Location at, Diagnostics& diagnostics) {
  if (value.size() > limits::kMaxNamespaceLength) {
    diagnostics.error(
        at, fmt::format("this namespace has {} characters; the limit is {}", value.size(), limits::kMaxNamespaceLength),
        "choose a shorter one");
    return false;
  }
  for (std::size_t begin = 0;;) {
    const std::size_t end = value.find("::", begin);
    const ast::Name part{std::string(value.substr(begin, end - begin)), at};
    if (part.text.empty() || is_digit(part.text.front()) ||
        !std::ranges::all_of(part.text, [](char c) { return is_letter(c) || is_digit(c); })) {
      diagnostics.error(at, "this is not a C++ namespace", "write 'option namespace = \"a::b\";'");
      return false;
    }
    // Outermost, `lrpc` is the runtime's own namespace and hides nothing; as an inner name it would hide that
    // namespace.
    const bool in_lrpc = begin == 0 && part.text == "lrpc";
    if (!in_lrpc && !check_name(part, NameUse::space, diagnostics)) return false;
    if (!check_free(value.substr(0, begin == 0 ? 0 : begin - 2), part, diagnostics)) return false;
    if (end == std::string_view::npos) return true;
    begin = end + 2;
  }
}

bool check_free(std::string_view around, const ast::Name& name, Diagnostics& diagnostics) {
  const bool taken = around.empty() ? is_global_name(name.text) : around == "lrpc" && is_runtime_name(name.text);
  if (!taken) return true;
  diagnostics.error(name.at,
                    fmt::format("'{}' cannot be a C++ namespace: {} has this name for something else", name.text,
                                around.empty() ? "the C library" : "the runtime"),
                    around.empty() ? "choose another name, or put it into a namespace: 'option namespace = \"a\";'"
                                   : "choose another name");
  return false;
}

bool Scope::declare(const ast::Name& name, NameUse use) {
  if (!check_name(name, use, diagnostics_)) return false;
  const auto [entry, fresh] = taken_.try_emplace(name.text, name.at);
  if (!fresh) {
    diagnostics_.error(name.at, fmt::format("'{}' is declared twice", name.text));
    diagnostics_.note(entry->second, "it was declared here first");
  }
  return fresh;
}

}  // namespace lrpc::stubgen
