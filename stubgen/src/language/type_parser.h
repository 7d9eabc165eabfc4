// The grammar's rules of names, numbers and types.
#pragma once

#include <string_view>

#include "lrpc/stubgen/language/ast.h"
#include "token_stream.h"

namespace lrpc::stubgen {

/// A rule that takes a documentation comment is called after its first word was taken.
class TypeParser : protected TokenStream {
 public:
  using TokenStream::TokenStream;

 protected:
  static constexpr std::string_view kNameTheRange =
      "give the range a name, with 'type Name = int32 range 0 .. 9;', and write that here";

  ast::Enum enumeration(Doc doc);
  ast::Alias alias(Doc doc);
  ast::Record record(Doc doc, bool is_error);
  ast::Handle handle(Doc doc);
  ast::TypeRef type();
  ast::Number number();
  ast::Name name(std::string_view what);

 private:
  ast::Enumerator enumerator();
  ast::Field field();
};

}  // namespace lrpc::stubgen
