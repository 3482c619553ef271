<% extends "templates/_pod_template.tpl" %>

<% block training_env %>
<%= super() %>
        - name: HTTPS_PROXY
          value: http://proxy.acme.example:3128
<% endblock %>
