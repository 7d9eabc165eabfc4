// A checked interface: every name resolved, every number within its limits, every value with its place in the image.
// The checker builds it, the layout fills in the places, the emitters read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/stubgen/language/ast.h"
#include "lrpc/stubgen/language/integer.h"
#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/language/token.h"

namespace lrpc::stubgen {

/// The least multiple of the alignment that is not below the value.
[[nodiscard]] constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// The runtime's limits (lrpc/detail/shim/call/pdl.h has the same numbers; a test holds the two together).
namespace limits {
inline constexpr std::uint64_t kMaxProcedures = 4096;
inline constexpr std::uint64_t kMaxDeclarations = 8192;
inline constexpr std::uint64_t kMaxMembers = 1024;  ///< Fields of a record, values of an enum.
inline constexpr std::uint64_t kMaxParameters = 128;
inline constexpr std::uint64_t kMaxRaises = 0xff;
inline constexpr std::uint64_t kMaxExtents = 4;
inline constexpr std::uint64_t kMaxNesting = 64;  ///< Types within types: recursive functions need stack for each.
inline constexpr std::uint64_t kMaxAStacksPerClass = 1024;
inline constexpr std::uint64_t kMaxImageSize = 64 * 1024;
inline constexpr std::uint64_t kMaxTailSize = 256 * 1024 * 1024;
inline constexpr std::uint64_t kMaxRegionSize = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxStringBound = 65'535;
inline constexpr std::uint64_t kMaxNameLength = 128;
inline constexpr std::uint64_t kMaxNamespaceLength = 256;
inline constexpr std::uint64_t kMaxExportedText = 126 * 1024;  ///< Bytes; a longer declaration may not fit an export.
inline constexpr std::uint64_t kAStackHead = 16;               ///< The call word and its neighbours, before the image.
inline constexpr std::uint64_t kDefaultAStacks = 5;            ///< LRPC §5.2.
inline constexpr std::uint64_t kDefaultAStackSize = 1500;      ///< One Ethernet packet (LRPC §5.2).
inline constexpr std::uint64_t kMinAStackSize = 64;
}  // namespace limits

enum class TypeKind : std::uint8_t {
  integer,
  floating,
  boolean,
  byte,
  enumeration,
  alias,
  record,
  handle,
  string,
  bytes,
  array
};

struct Type;

/// An integer type of the language; also the underlying type of an enum.
struct IntegerKind {
  bool is_signed = false;
  unsigned bits = 8;
  [[nodiscard]] std::string name() const { return (is_signed ? "int" : "uint") + std::to_string(bits); }
  [[nodiscard]] Integer lowest() const { return is_signed ? Integer(true, std::uint64_t{1} << (bits - 1)) : Integer(); }
  [[nodiscard]] Integer highest() const { return ~std::uint64_t{0} >> (64 - bits + (is_signed ? 1U : 0U)); }
};

struct Enumerator {
  Doc doc;
  std::string name;
  Integer value;
};

struct Field {
  Doc doc;
  std::string name;
  const Type* type = nullptr;
  std::uint64_t offset = 0;  ///< From the record's first byte.
};

/// One type, built in or declared. Owned by the Interface; everything else points at it.
struct Type {
  TypeKind kind = TypeKind::integer;
  std::string name;  ///< As an interface file spells it: "int32", "Stat", "string<255>", "byte[200]".
  /// Of a declared type, as the generated code does: the name, or "::a::Files::Stat" if a field or parameter hides it.
  std::string spelled;
  bool declared = false;
  Location at;
  Doc doc;

  std::uint64_t size = 0;  ///< In an image, as a field or array element. 0: not known yet, or cannot be one (bytes).
  std::uint64_t alignment = 1;

  IntegerKind integer;                  ///< integer, enumeration
  std::optional<Integer> low, high;     ///< alias: of a range, where it is narrower than the integer type
  std::vector<Enumerator> enumerators;  ///< enumeration
  std::vector<Field> fields;            ///< record
  bool is_error = false;                ///< record: can be raised
  const Type* target = nullptr;         ///< alias: what it names; array: its elements
  std::uint64_t bound = 0;              ///< string, bytes: most bytes; array: number of elements
  std::uint32_t tag = 0;                ///< handle: its number in the interface, from 1
  std::uint32_t dimensions = 0;         ///< Arrays within arrays, seen through aliases.
  std::uint32_t nesting = 0;            ///< How deep the types within it are nested.

  /// True if its C++ type has values that this type excludes (it is or holds a range or an enum), so that values are
  /// checked.
  bool constrained = false;
  /// True if it is plain data in which every bit pattern is a value: one block move copies it, nothing to check.
  bool plain = false;
  /// True if loading one from an image can fail: it is constrained, or holds a bool or a string.
  bool fallible = false;

  /// Looks through aliases; `this` for everything else.
  [[nodiscard]] const Type& resolved() const;
  /// For an alias with a range: its ends, with `between` between them: "0 .. 7" for " .. ".
  [[nodiscard]] std::string range_text(std::string_view between) const;
};

/// Where a `string` or `bytes` parameter lies (lrpc::VariableParameter).
struct Window {
  std::uint64_t inline_offset = 0;
  std::uint64_t inline_capacity = 0;
  std::uint64_t tail_offset = 0;
};

struct Parameter {
  Doc doc;
  std::string name;
  Location at;
  const Type* type = nullptr;
  ast::Direction direction = ast::Direction::in;
  bool uninterpreted = false;
  bool closes = false;

  std::uint64_t offset = 0;  ///< Of the value in the image; of a variable parameter, its length word.
  Window window;             ///< Only if variable().
  std::string constant;      ///< Likewise: "kOpen_name", its place in the generated code.

  [[nodiscard]] bool is_in() const { return direction != ast::Direction::out; }
  [[nodiscard]] bool is_out() const { return direction != ast::Direction::in; }
  [[nodiscard]] bool is_string() const { return type->resolved().kind == TypeKind::string; }
  [[nodiscard]] bool is_bytes() const { return type->resolved().kind == TypeKind::bytes; }
  [[nodiscard]] bool is_handle() const { return type->resolved().kind == TypeKind::handle; }
  [[nodiscard]] bool variable() const { return is_string() || is_bytes(); }
  /// Comes back in an object that the caller passes, not in the stub's return value.
  [[nodiscard]] bool comes_back() const { return is_out() && (is_in() || is_bytes()); }
};

struct Raised {
  const Type* type = nullptr;
  std::uint64_t offset = 0;  ///< Of the error's image: it overlays the results.
};

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

using NameSet = std::set<std::string, std::less<>>;

/// The names that the file declares in one C++ namespace: types, and the procedures of the interface or of its
/// callback.
struct GivenNames {
  NameSet types;
  NameSet all;

  /// A name that the generated code itself declares: `wanted`, with a '_' behind it if the file declares that name. No
  /// name in a file ends in '_', nor does `wanted`, so two such names never collide.
  [[nodiscard]] std::string own(std::string_view wanted) const {
    return std::string(wanted) + (all.contains(wanted) ? "_" : "");
  }
};

struct Procedure {
  Doc doc;
  std::string name;
  Location at;
  std::shared_ptr<const GivenNames> given;  ///< Its interface's.
  std::vector<Parameter> parameters;        ///< Those before '->' that are in or inout, then the results.
  std::vector<Raised> raises;
  bool may_block = false;
  bool one_way = false;  ///< The caller does not wait: no results, no errors.
  std::uint64_t astacks = limits::kDefaultAStacks;
  std::uint64_t astack_size = limits::kDefaultAStackSize;
  std::optional<ast::Number> astack_size_given;

  std::uint64_t fixed_size = 0;
  std::uint64_t image_size = 0;
  std::uint64_t tail_size = 0;
  std::size_t astack_class = 0;
  std::uint64_t stack_need = 0;  ///< Most bytes of stack that the entry stub's own copies take.
  std::vector<ByteRange> call_ranges;
  std::vector<ByteRange> return_ranges;

  [[nodiscard]] std::vector<const Parameter*> arguments() const;  ///< in and inout, in order
  [[nodiscard]] std::vector<const Parameter*> results() const;    ///< out, without bytes
  [[nodiscard]] std::vector<const Parameter*> buffers() const;    ///< out, only bytes
  [[nodiscard]] bool any_variable() const;
  /// The names of the classes that are generated for it, which no declaration and no parameter has: "OpenResults", only
  /// with several results, and "Open_outcome".
  [[nodiscard]] std::string results_class() const { return own(name + "Results"); }
  [[nodiscard]] std::string outcome_class() const { return own(name + "_outcome"); }

 private:
  [[nodiscard]] std::string own(const std::string& wanted) const;
};

struct AStackClass {
  std::uint64_t image_size = 0;
  std::uint64_t tail_size = 0;
  std::uint64_t count = 0;
};

/// Owns its types. Movable, not copyable: types point at each other.
struct Interface {
  Doc doc;
  std::string name;
  Location at;
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::string enclosing_namespace;  ///< `option namespace`, empty if none.
  std::uint64_t astacks = limits::kDefaultAStacks;
  std::uint64_t astack_size = limits::kDefaultAStackSize;

  std::vector<std::unique_ptr<Type>> types;
  std::vector<const Type*> declared;        ///< In the file's order.
  std::vector<const Type*> ordered;         ///< The same, each after the types that it is made of.
  std::shared_ptr<const GivenNames> given;  ///< Null only if there were errors.
  std::vector<Procedure> procedures;
  std::vector<AStackClass> classes;

  /// The interface by which the server calls its clients back; null if there is none. It has no types of its own, but
  /// uses this one's. Its code is in namespace `Callback` within this one's.
  std::unique_ptr<Interface> callback;

  /// "::a::b::Files"
  [[nodiscard]] std::string cpp_namespace() const;

  std::string canonical;  ///< The declaration, normalised, without comments.
  std::uint64_t hash = 0;
};

}  // namespace lrpc::stubgen
