// The moves between C++ values and an argument image, which stubs and record codecs consist of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "code.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// `std::int32_t`, `Stat`, `std::array<std::byte, 200>`: as generated code in the interface's namespace spells a type.
[[nodiscard]] std::string cpp_type(const Type& type);
/// An integer constant, written so that no compiler warns about it.
[[nodiscard]] std::string cpp_constant(const Integer& value);

/// A place in an image: `image + 8 + i * 12`.
struct Place {
  std::string base = "image";
  std::uint64_t offset = 0;
  std::string stride;  ///< The offsets that the loops around it add; empty outside of arrays.
  [[nodiscard]] std::string text() const;
  /// Where an element of this size lies in an array that begins here.
  [[nodiscard]] Place element(std::string_view index, std::uint64_t size) const;
};

/// Emits moves into one function body.
class Moves {
 public:
  /// `copy_code`: the template argument that names the copy (LRPC Table III). `prefix`: how the function reaches
  /// namespace layout. `locals`: for loop variables.
  Moves(Code& code, std::string copy_code, std::string prefix, const Locals& locals)
      : code_(code), copy_code_(std::move(copy_code)), prefix_(std::move(prefix)), locals_(locals) {}

  /// Writes `value` at `place`, with zeroes as padding.
  void put(const Type& type, const Place& place, const std::string& value) const;
  /// Loads every part once into `target` and checks the copy; `on_failure` is the statement for a value that does not
  /// conform.
  void get(const Type& type, const Place& place, const std::string& target, const std::string& on_failure) const;
  /// The same into a new variable, const unless `changes`.
  void declare(const Type& type, const Place& place, const std::string& name, bool changes,
               const std::string& on_failure) const;
  /// Checks a private value. Emits nothing if its type has no constraint.
  void check(const Type& type, const std::string& value, const std::string& on_failure) const;

  [[nodiscard]] const std::string& copy_code() const { return copy_code_; }

 private:
  [[nodiscard]] std::string function(std::string_view name) const { return prefix_ + locals_.function(name); }
  template <class Body>
  void for_each(const Type& array, const Body& body) const;

  Code& code_;
  std::string copy_code_;
  std::string prefix_;
  const Locals& locals_;
  mutable std::size_t depth_ = 0;
};

/// True if the type is moved as a block, after which the compiler must be kept from reading the image again.
[[nodiscard]] bool moves_blocks(const Type& type);

}  // namespace lrpc::stubgen
