// The grammar's rules of procedures, and of the callback, which contains procedures.
#pragma once

#include <optional>
#include <vector>

#include "type_parser.h"

namespace lrpc::stubgen {

class ProcedureParser : protected TypeParser {
 public:
  using TypeParser::TypeParser;

 protected:
  /// At `procedure` or `oneway procedure`: takes the whole declaration. Nothing, and `doc` as it was, at anything else.
  std::optional<ast::Procedure> procedure_here(Doc& doc);
  ast::Callback callback(Doc doc);

 private:
  ast::Procedure procedure(Doc doc);
  std::vector<ast::Parameter> parameters(bool results);
  ast::Parameter parameter(bool results);
  void clauses(ast::Procedure& procedure);
};

}  // namespace lrpc::stubgen
