// The types of an interface: built-in ones, those that the file declares, and those it spells in place (`byte[200]`).
#pragma once

#include <map>
#include <string>

#include "lrpc/stubgen/language/ast.h"
#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/layout/model.h"
#include "names.h"

namespace lrpc::stubgen {

/// Makes the types of one Interface, which owns them. Used by the checker in this order: declare() for each
/// declaration, define() for each, complete() once, then type_of() for parameters.
class TypeTable {
 public:
  TypeTable(Interface& interface, Diagnostics& diagnostics);

  /// Makes a type for a declared name, so that others can refer to it before it is defined.
  Type& declare(const ast::Name& name, TypeKind kind, const Doc& doc);
  void define(Type& type, const ast::Enum& declaration);
  void define(Type& type, const ast::Alias& declaration);
  void define(Type& type, const ast::Record& declaration);
  /// Finds sizes and an order in which each declared type comes after the types that it is made of; reports cycles.
  void complete();

  /// The type that `ref` names, complete if complete() has run; null, with a diagnostic, if there is none.
  [[nodiscard]] Type* type_of(const ast::TypeRef& ref);
  /// The declared or built-in type of this name, or null.
  [[nodiscard]] Type* find(std::string_view name) const;

 private:
  enum class Progress : std::uint8_t { begun, done };

  Type& make(std::string name, TypeKind kind);
  Type* named(const ast::TypeRef& ref);
  Type* array_of(Type* element, const ast::Number& extent);
  [[nodiscard]] bool may_be_inside(const Type& type, Location at, std::string_view inside);
  void narrow(Type& alias, const ast::Alias& declaration);
  void complete(Type& type);
  void complete_link(const Type*& link, const Type& from);
  void measure(Type& type);
  void nest(Type& type);
  void report_nesting(const Type& type);

  Interface& interface_;
  Diagnostics& diagnostics_;
  std::map<std::string, Type*, std::less<>> by_name_;
  std::map<const Type*, Progress> progress_;
  std::map<const Type*, const ast::Alias*> aliases_;
  std::uint64_t depth_ = 0;  ///< How deep complete() has called itself.
  bool completed_ = false;   ///< complete() has run: later types are completed at once.
};

}  // namespace lrpc::stubgen
