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
