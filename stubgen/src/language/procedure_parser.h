// The grammar's rules of procedures, and of the callback, which contains procedures.
#pragma once

#include <vector>

#include "type_parser.h"

namespace lrpc::stubgen {

class ProcedureParser : protected TypeParser {
 public:
  using TypeParser::TypeParser;

 protected:
  ast::Procedure procedure(Doc doc);
  ast::Callback callback(Doc doc);

 private:
  std::vector<ast::Parameter> parameters(bool results);
  ast::Parameter parameter(bool results);
  void clauses(ast::Procedure& procedure);
};

}  // namespace lrpc::stubgen
