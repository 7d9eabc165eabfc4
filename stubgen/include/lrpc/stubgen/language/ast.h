// An interface file as written: names are not looked up, numbers not checked. The parser makes it, the checker reads
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lrpc/stubgen/language/integer.h"
#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/language/token.h"

namespace lrpc::stubgen::ast {

struct Name {
  std::string text;
  Location at;
};

struct Number {
  Integer value;
  Location at;
};

/// `int32`, `Stat`, `string<255>`, `byte[4][200]`.
struct TypeRef {
  Name name;
  std::optional<Number> bound{};
  std::vector<Number> extents{};  ///< Outermost first.
};

struct Enumerator {
  Doc doc;
  Name name;
  std::optional<Number> value{};
};
struct Enum {
  Doc doc;
  Name name;
  std::optional<Name> underlying{};
  std::vector<Enumerator> enumerators{};
  bool incomplete = false;  ///< The parser stopped within the values and reported an error.
};

struct Range {
  Number low;
  Number high;
};
/// `type X = T;` or `type X = T range a .. b;`
struct Alias {
  Doc doc;
  Name name;
  TypeRef type{};
  std::optional<Range> range{};
};

struct Field {
  Doc doc;
  Name name;
  TypeRef type{};
};
/// A record, or an error (`is_error`), which is a record that a procedure can raise.
struct Record {
  Doc doc;
  Name name;
  bool is_error = false;
  std::vector<Field> fields{};
  bool incomplete = false;  ///< The parser has skipped a field and reported an error.
};

struct Handle {
  Doc doc;
  Name name;
};

enum class Direction : std::uint8_t { in, inout, out };

struct Parameter {
  Doc doc;
  Direction direction = Direction::in;
  Name name{};
  TypeRef type{};
  std::optional<Location> uninterpreted{};
  std::optional<Location> closes{};
};

struct Procedure {
  Doc doc;
  Name name;
  std::vector<Parameter> parameters{};
  std::vector<Parameter> results{};
  std::vector<Name> raises{};
  std::optional<Number> astacks{};
  std::optional<Number> astack_size{};
  bool may_block = false;
  std::optional<Location> one_way{};  ///< Where `oneway` stands.
};

struct Option {
  Name name;
  std::variant<Number, std::string> value{};
  Location value_at{};
};

/// `callback { procedure ...; }`: the procedures by which the interface's server calls its clients back.
struct Callback {
  Doc doc;
  Location at;
  std::vector<Procedure> procedures{};
};

using Declaration = std::variant<Enum, Alias, Record, Handle, Procedure, Callback, Option>;

struct Interface {
  Doc doc;
  Name name;
  Number major;
  Number minor;
  std::vector<Declaration> declarations;  ///< In the order of the file.
};

}  // namespace lrpc::stubgen::ast
